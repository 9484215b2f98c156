//! All scenarios, and the suite that runs them; `cargo xtask e2e` builds what they need and starts this.
//!
//! A module registers its scenarios with [`scenarios!`](kcm_e2e_harness::scenarios); its line here is all else it needs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

mod alone;
mod api;
mod deploy;
mod deployment;
mod disruption;
mod endpointslice;
mod envtest;
mod garbage_collector;
mod host;
mod identities;
mod kubectl;
mod lease;
mod metrics;
mod metrics_server;
mod replicaset;
mod resourcequota;
mod serviceaccount_token;
mod serving;
mod sick_server;
mod takeover;
mod tour;
mod website;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use kcm_e2e_harness::interrupt;
use kcm_e2e_harness::scenario::{Selected, all, select};
use kcm_e2e_harness::suite::{self, On, Outcome, PeerRuns, Plan};

// The scenarios of the folder `scripts`.
include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

const USAGE: &str = "\
usage: cargo xtask e2e [FLAGS] [PART-OF-A-NAME...]

  --list      name the scenarios and run none
  --quick     leave out the scenarios that take many minutes
  --sandbox   run them on a sandbox instead of a control plane
  --older     run them on a control plane with the API server of the minor version before
  --jobs=N    scenarios at the same time (default: one more than there are cores, at most 4)
  --peer      let upstream's manager run again what it has passed, and record what it passes
              in e2e/peer-verified.tsv
";

/// More control planes than these would compete for the disk. Scenarios wait for half of their time, so that one more than
/// there are cores keep these busy.
const MOST_JOBS: usize = 4;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(Some(Outcome { passed, failed, .. })) => {
            println!("\n{passed} passed, {failed} failed");
            if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<Option<Outcome>> {
    let (flags, filters): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|arg| arg.starts_with('-'));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut plan = Plan { on: On::ControlPlane, jobs: (cores + 1).min(MOST_JOBS), peer: PeerRuns::Changed };
    let (mut is_list, mut is_quick) = (false, false);
    for flag in &flags {
        match flag.split_once('=').unwrap_or((flag, "")) {
            ("--list", "") => is_list = true,
            ("--quick", "") => is_quick = true,
            ("--sandbox", "") => plan.on = On::Sandbox,
            ("--older", "") => plan.on = On::OlderControlPlane,
            ("--peer", "") => plan.peer = PeerRuns::All,
            ("--jobs", number) => plan.jobs = number.parse().with_context(|| format!("`{flag}` needs a number"))?,
            _ => bail!("`{flag}` was not expected\n\n{USAGE}"),
        }
    }
    if plan.jobs == 0 {
        bail!("`--jobs` must be at least 1");
    }
    let mut selected = select(all(), &filters);
    selected.retain(|it| !(is_quick && it.is_long()));
    if selected.is_empty() {
        bail!("no scenario's name contains any of {filters:?}: `cargo xtask e2e --list` names them all");
    }
    if is_list {
        for name in selected.into_iter().map(Selected::name) {
            println!("{name}");
        }
        return Ok(None);
    }
    interrupt::or(suite::run(plan, &selected, &|line| println!("{line}"))).await.map(Some)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kcm_e2e_harness::peer_verified::{PeerVerified, digest, sources};
    use kcm_e2e_harness::scenario::{Scenario, all, select};
    use kcm_e2e_harness::script;
    use kcm_e2e_harness::subject::Subject;

    #[test]
    fn no_two_scenarios_have_one_name() {
        let all = all();
        assert!(all.len() > 100, "{} are linked", all.len());
        assert!(all.is_sorted_by(|one, next| one.name < next.name));
    }

    /// What scenarios are about beside controllers.
    const TOPICS: [&str; 11] = [
        "api",
        "deploy",
        "envtest",
        "hello",
        "host",
        "identities",
        "kubectl",
        "lease",
        "metrics",
        "serving",
        "website",
    ];

    #[test]
    fn a_name_begins_with_its_controller() {
        let table = include_str!("../../../controller-manager/tests/data/controllers.tsv");
        let canonical = table.lines().skip(1).filter_map(|line| line.split('\t').next()?.strip_suffix("-controller"));
        let known: Vec<&str> = canonical.chain(TOPICS).collect();
        let names = all().into_iter().map(|it| it.name.split('/').next().unwrap_or_default());
        let others: Vec<&str> = names.filter(|name| !known.contains(name)).collect();
        assert!(others.is_empty(), "{others:?}");
    }

    #[test]
    fn every_script_is_sound() {
        let mistakes = script::all().into_iter().filter_map(|file| file.read().err());
        let mistakes: Vec<String> = mistakes.collect();
        assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
        assert!(!script::all().is_empty());
    }

    #[test]
    fn every_scenario_gives_its_namespace_a_name_that_is_short_enough() {
        for it in select(all(), &[]) {
            assert!(it.namespace().len() <= 63, "{}", it.namespace());
        }
    }

    #[test]
    fn the_committed_record_names_scenarios_of_the_peer_only() {
        let mut record = PeerVerified::read().expect("the committed record is sound");
        let before = record.clone();
        record.retain(|name| all().into_iter().any(|it| it.name == name && it.is_about(Subject::Peer)));
        assert_eq!(record, before);
    }

    #[test]
    fn a_folder_of_scenarios_is_digested_as_a_whole_and_apart_from_others() {
        let of = |name: &str| -> &'static Scenario {
            all().into_iter().find(|it| it.name == name).expect("it is a scenario")
        };
        let files = sources(of("deployment/is_watched").source).expect("its sources are there");
        for file in ["e2e/scenarios/src/deployment/mod.rs", "e2e/scenarios/src/deployment/kills.rs"] {
            assert!(files.iter().any(|it| it == Path::new(file)), "{files:?}");
        }
        let [one, same, other] = ["deployment/is_watched", "deployment/is_edited", "replicaset/survives_kills"]
            .map(|name| digest(of(name)).expect("its sources are there"));
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert_eq!(one.len(), 16);
    }
}
