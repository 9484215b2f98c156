//! `cargo xtask ci`: everything that must hold before a change is merged, and with `--full` before a release.
//!
//! The cheap checks come first, the control plane and its scenarios last. Cargo compiles a crate again for each set of
//! features, and a selection of packages decides the features of all. So there are two selections only: the whole
//! workspace with all targets (clippy, then the build that tests and scenarios share), and the crates that differ when
//! nothing else turns their features on (checked, not built).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{control_plane, e2e, parity, simulate, step, upstream_tests};

/// The workspace with all targets, and with the example host that runs beside the built-in controllers.
const WHOLE: [&str; 3] = ["--workspace", "--all-targets", "--features=kcm-example-hello-host/builtin"];

/// Number of runs of each scenario.
const SEARCH_RUNS: u32 = 30;

/// Number of checks and scenarios that a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What each change has to pass, within half an hour on two cores.
    Quick,
    /// What a release has to pass too: what takes long, or fails only when pinned versions or tables change.
    Full,
}

/// Runs every step in order, stops at the first that fails, and prints how long each took.
///
/// The suite's closing line (`N passed, 0 failed`) comes last in a run that succeeded.
pub(crate) fn run(extent: Extent) -> Result<()> {
    let mut times = Times::default();
    let result = steps(extent, &mut times);
    if result.is_err() {
        times.print();
    }
    result
}

fn steps(extent: Extent, times: &mut Times) -> Result<()> {
    times.step("formatting", || step::run(&mut step::cargo(["fmt", "--all", "--check"])))?;
    times.step("clippy, warnings denied", || {
        step::run(step::cargo(["clippy"]).args(WHOLE).args(["--", "--deny=warnings"]))
    })?;
    times.step("documentation, warnings denied", || {
        step::run(step::cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny=warnings"))
    })?;
    match extent {
        Extent::Quick => times.step("crates without what is optional", without_options)?,
        Extent::Full => {
            times.step("each published crate alone", each_crate_alone)?;
            times.step("tests of the sandbox's API server without kubectl", || {
                step::run(&mut step::cargo(["test", "--package=kcm-sandbox-apiserver"]))
            })?;
        }
    }
    times.step("build", || step::run(step::cargo(["build"]).args(WHOLE)))?;
    times.step("tests", || {
        // The documentation's test then asks every test binary which tests it has.
        step::run(step::cargo(["test", "--workspace"]).arg(WHOLE[2]).env("WORKSPACE_IS_BUILT", "1"))
    })?;
    // Not in the profile of long searches, whose build takes longer than the search.
    times.step("searches of schedules", || simulate::each(SEARCH_RUNS, WHOLE[2]))?;
    times.step("control plane", control_plane::build)?;
    // The table stands before the suite on a control plane, so that the suite's closing line is the last one.
    match extent {
        Extent::Quick => {
            times.print();
            times.step("a scenario of each controller, on a control plane", one_scenario_of_each)
        }
        Extent::Full => {
            times.step("tables of upstream's flags, gates and controllers", parity::run)?;
            times.step("upstream's integration tests, quick packages", upstream_tests::quick)?;
            times.step("e2e suite, on a sandbox", || e2e::built_suite(&["--sandbox", "ours/"]))?;
            times.step("a scenario of each controller, beside the API server of the version before", || {
                control_plane::build_with_older()?;
                let list = scenarios()?;
                e2e::built_suite(&[&["--older"], &one_of_each(&list)[..]].concat())
            })?;
            times.print();
            times.step("e2e suite, on a control plane", || e2e::built_suite(&[]))
        }
    }
}

/// Checks the crates whose optional features another member of the workspace turns on, in one selection in which none
/// is on: a host of its own, without built-in controllers, profiles and sandbox, and the test environment, whose API
/// server has no `kubectl`.
fn without_options() -> Result<()> {
    let packages = ["--package=kcm-controller-manager", "--package=kcm-testing"];
    step::run(step::cargo(["check", "--quiet", "--no-default-features"]).args(packages))
}

/// Checks every member that is published with its own features: within the workspace a crate can lean on features that
/// another member asked for, as a user of the published crate cannot.
fn each_crate_alone() -> Result<()> {
    for member in published()? {
        step::run(step::cargo(["check", "--quiet"]).current_dir(&member.folder))?;
        if member.has_default_features {
            step::run(step::cargo(["check", "--quiet", "--no-default-features"]).current_dir(&member.folder))?;
        }
    }
    // The product without the sandbox.
    let lean =
        ["check", "--quiet", "--package=kcm-controller-manager", "--no-default-features", "--features=builtin,pprof"];
    step::run(&mut step::cargo(lean))
}

/// Runs the scenarios that [`one_of_each`] selects from those of the built suite.
fn one_scenario_of_each() -> Result<()> {
    let list = scenarios()?;
    let selected = one_of_each(&list);
    ensure!(!selected.is_empty(), "the suite lists no scenario of ours:\n{list}");
    e2e::built_suite(&selected)
}

/// The names of the scenarios of the built suite, without those for full runs.
fn scenarios() -> Result<String> {
    step::output(Command::new(step::target().join("debug/suite")).args(["--list", "--quick"]))
}

/// Scenarios of a release, by how their names begin. They wait for a minute or longer, for leases or for the discovery of
/// a definition, or need rights that a user may not have.
const OF_A_RELEASE: [&str; 5] = [
    "ours/host/fails_over",
    "ours/host/runs_in_a_container",
    "ours/host/sandbox_",
    "ours/host/takes_turns",
    "ours/website/",
];

/// Returns the first of our scenarios of each controller, and of each other subject, such as the lease, that a change has
/// to pass.
fn one_of_each(list: &str) -> Vec<&str> {
    let mut subjects = BTreeSet::new();
    let quick = list.lines().map(str::trim).filter(|name| !OF_A_RELEASE.iter().any(|start| name.starts_with(start)));
    let ours = quick.filter_map(|name| Some((name, name.strip_prefix("ours/")?.split_once('/')?.0)));
    ours.filter(|(_, subject)| subjects.insert(*subject)).map(|(name, _)| name).collect()
}

/// A member of the workspace that others can depend on.
struct Member {
    folder: PathBuf,
    has_default_features: bool,
}

fn published() -> Result<Vec<Member>> {
    let mut command: Command = step::cargo(["metadata", "--no-deps", "--format-version=1"]);
    let metadata: serde_json::Value =
        serde_json::from_str(&step::output(&mut command)?).context("cannot read what `cargo metadata` printed")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` printed no packages")?;
    // `publish = false` is an empty list of registries.
    let published = packages.iter().filter(|package| package["publish"].as_array().is_none_or(|it| !it.is_empty()));
    published
        .map(|package| {
            let manifest =
                package["manifest_path"].as_str().context("`cargo metadata` printed a package without a manifest")?;
            Ok(Member {
                folder: Path::new(manifest).parent().context("a manifest lies in no folder")?.to_path_buf(),
                has_default_features: package["features"]["default"]
                    .as_array()
                    .is_some_and(|features| !features.is_empty()),
            })
        })
        .collect()
}

/// The duration of each step.
#[derive(Default)]
struct Times {
    steps: Vec<(&'static str, Duration)>,
}

impl Times {
    /// Runs one step under a heading, prints its time and keeps it.
    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("\n== {name}");
        let started = step::now();
        let result = work().with_context(|| format!("step `{name}`"));
        let took = started.elapsed();
        self.steps.push((name, took));
        // The suite's closing line stays the last one.
        if result.is_err() || !name.ends_with("on a control plane") {
            println!("== {name}: {}", shown(took));
        }
        result
    }

    fn print(&self) {
        println!("\n{}", self.table());
    }

    fn table(&self) -> String {
        let total = self.steps.iter().map(|(_, took)| *took).sum();
        let rows = self.steps.iter().copied().chain([("in all", total)]);
        rows.map(|(name, took)| format!("{:>8}  {name}", shown(took))).collect::<Vec<_>>().join("\n")
    }
}

fn shown(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Times, one_of_each};

    #[test]
    fn each_controller_has_the_first_of_its_scenarios() {
        let list = "ours/job/runs\npeer/job/runs\nours/job/fails\npeer/lease/moves\nours/lease/moves\n";
        assert_eq!(one_of_each(list), ["ours/job/runs", "ours/lease/moves"]);
    }

    #[test]
    fn what_takes_long_is_of_a_release() {
        let list = "ours/host/fails_over\nours/host/waits_for_rights\nours/website/keeps_to_its_role\n";
        assert_eq!(one_of_each(list), ["ours/host/waits_for_rights"]);
    }

    #[test]
    fn the_table_ends_with_the_sum() {
        let steps = vec![("formatting", Duration::from_secs(3)), ("tests", Duration::from_secs(62))];
        assert_eq!(Times { steps }.table(), "    0:03  formatting\n    1:02  tests\n    1:05  in all");
    }
}
