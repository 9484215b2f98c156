//! Ours beside upstream's: memory, CPU, time and requests, scenario by scenario.
//!
//! Each run of each scenario has a control plane of its own, with nodes on which pods run, and one manager; the
//! managers take turns, so that other load of the machine affects both. `testbed` measures, `workload` and `objects` do
//! the work with the objects of `manifests`, `probe` shows that a manager works, `scenarios` has the scenarios,
//! `self_metrics` reads a manager's metrics and log, `micro` reads criterion's figures, `bars` has the limits, `report`
//! the record, `pages` and `chart` its pages.

#![allow(clippy::must_use_candidate, reason = "the value of a getter is not ignored by accident")]

mod autoscalers;
mod bars;
mod budgets;
mod chart;
mod cron_jobs;
mod daemon_sets;
mod endpoint_latency;
mod figures;
mod flaky_proxy;
mod garbage;
mod jobs;
mod large_cluster;
mod manifests;
mod micro;
mod mirrored;
mod objects;
mod pages;
mod probe;
mod report;
mod scenarios;
mod self_metrics;
mod service_cidrs;
mod services;
mod size;
mod stateful_sets;
mod testbed;
mod workload;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kcm_e2e_harness::binaries;
use kcm_e2e_harness::scenario::LIMITS;
use kcm_e2e_harness::subject::Subject;

pub use pages::Pages;
pub use report::Record;
pub use scenarios::{SCENARIOS, Scenario};
pub use size::Size;

use micro::Micro;
use scenarios::Surroundings;
use testbed::{Setup, Testbed};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The size of the scenarios.
    pub size: Size,
    /// Whose managers, in this order.
    pub subjects: Vec<Subject>,
    /// How often each scenario runs.
    pub runs: usize,
    /// Names of scenarios; all of the size where there is none.
    pub scenarios: Vec<String>,
    /// What the managers run, as `--controllers` takes it, where a scenario does not say it.
    pub controllers: String,
    /// The factor of the sizes of the scenarios with controllers of their own.
    pub scale: f64,
    /// Further flags of both managers. The last of two equal ones counts.
    pub flags: Vec<String>,
}

impl Plan {
    /// A plan of a size, with everything else as usual.
    #[must_use]
    pub fn of(size: Size) -> Self {
        Self {
            size,
            subjects: Subject::ALL.to_vec(),
            runs: match size {
                Size::Quick => 1,
                Size::Full => 5,
            },
            scenarios: Vec::new(),
            controllers: "deployment,replicaset".to_owned(),
            scale: 1.0,
            flags: Vec::new(),
        }
    }

    /// The selected scenarios.
    ///
    /// # Errors
    ///
    /// If one is not known, or nothing would be measured.
    pub fn selected(&self) -> Result<Vec<&'static Scenario>> {
        if self.runs == 0 {
            bail!("`--runs` must be at least 1");
        }
        for name in &self.scenarios {
            if !SCENARIOS.iter().any(|it| it.name == name) {
                let known: Vec<&str> = SCENARIOS.iter().map(|it| it.name).collect();
                bail!("there is no scenario `{name}`: there are {}", known.join(", "));
            }
        }
        let is_meant = |it: &&Scenario| {
            if self.scenarios.is_empty() {
                self.size == Size::Full || it.quick
            } else {
                self.scenarios.iter().any(|name| name == it.name)
            }
        };
        Ok(SCENARIOS.iter().filter(is_meant).collect())
    }
}

/// Measures as planned and reports each run to `progress`; `measured` is the record's description of the measurement.
///
/// # Errors
///
/// If a program is missing or ends, or a phase takes too long.
pub async fn run(plan: &Plan, measured: &str, progress: &dyn Fn(&str)) -> Result<Record> {
    let selected = plan.selected()?;
    for subject in &plan.subjects {
        subject.program()?;
    }
    let mut record = Record::default();
    for scenario in selected {
        for run in 1..=plan.runs {
            for &subject in &plan.subjects {
                progress(&format!("{}, run {run} of {}: {subject}", scenario.name, plan.runs));
                let setup = Setup {
                    subject,
                    controllers: scenario.controllers.unwrap_or(&plan.controllers).to_owned(),
                    scale: plan.scale,
                    flags: plan.flags.clone(),
                    probe: scenario.probe,
                    requests: scenario.requests,
                    is_periodic: scenario.is_periodic,
                    runs_pods: scenario.surroundings != Surroundings::Nothing,
                    collector: scenario.surroundings == Surroundings::NodesAndCollector,
                    break_every: scenario.break_every,
                    rest: Duration::from_secs(match plan.size {
                        Size::Quick => 3,
                        Size::Full => 10,
                    }),
                };
                let mut testbed = Testbed::start(setup).await?;
                if let Err(error) = (scenario.play)(&mut testbed, plan.size).await {
                    let logs = testbed.keep_logs();
                    return Err(error).with_context(|| format!("{} of {subject} (logs: {logs})", scenario.name));
                }
                record.add(scenario.name, measured, subject, testbed.finish().await?);
            }
        }
    }
    Ok(record)
}

/// The description of a measurement: how often, when, which commit, and on what. Taken when the programs have just been
/// built.
///
/// # Errors
///
/// If the peer's version, the date or the commit cannot be read.
pub fn measured(plan: &Plan) -> Result<String> {
    let times = if plan.runs == 1 { "once".to_owned() } else { format!("{} times", plan.runs) };
    let peer = output_of(&binaries::control_plane("kube-controller-manager")?, &["--version"])?;
    let controllers = format!("--controllers={}", plan.controllers);
    let flags: Vec<&str> =
        [controllers.as_str()].into_iter().chain(LIMITS).chain(plan.flags.iter().map(String::as_str)).collect();
    let flags = flags.join(" ");
    Ok(format!("{times} each on {} beside {peer}, both with `{flags}`, on {}", version_today()?, machine()))
}

/// The record of what one step takes, from the folder where criterion has just left its figures.
///
/// # Errors
///
/// If there are none, or the date cannot be read.
pub fn micro(folder: &Path) -> Result<Record> {
    let measured = format!("on {}, on {}", version_today()?, machine());
    Ok(Record::of_micro(Micro::read(folder, measured)?))
}

fn version_today() -> Result<String> {
    let date = output_of(Path::new("date"), &["+%Y-%m-%d"])?;
    let commit = commit().unwrap_or_else(|_| "commit unknown".to_owned());
    Ok(format!("{date}, version {} ({commit})", env!("CARGO_PKG_VERSION")))
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    format!("{cores} cores of {}", model.trim_start_matches([' ', '\t', ':']))
}

fn commit() -> Result<String> {
    let git = |args: &[&str]| output_of(Path::new("git"), args);
    let commit = git(&["describe", "--always"])?;
    // The pages, the record among them, are no part of what is measured.
    let changed = git(&["status", "--porcelain", "--", ".", ":!docs"])?;
    Ok(if changed.is_empty() { commit } else { format!("{commit}, changed") })
}

fn output_of(program: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(output.status.success(), "{} {} ended with {}", program.display(), args.join(" "), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_run_plays_the_quick_scenarios_unless_others_are_named() {
        let names = |plan: &Plan| plan.selected().map(|all| all.iter().map(|it| it.name).collect::<Vec<_>>());
        let mut plan = Plan::of(Size::Quick);
        assert_eq!(names(&plan).expect("the plan is sound"), ["idle", "replica-sets", "deployments"]);
        plan.scenarios = vec!["cut".to_owned()];
        assert_eq!(names(&plan).expect("the plan is sound"), ["cut"]);
        plan.scenarios = vec!["cat".to_owned()];
        assert!(names(&plan).is_err_and(|error| error.to_string().contains("cut")));
    }
}
