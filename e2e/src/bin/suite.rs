//! Runs the scenarios; `cargo xtask e2e` builds what they need and starts this.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use kcm_e2e::scenario::{Selected, select};
use kcm_e2e::suite::{self, On, Outcome, PeerRuns, Plan};
use kcm_e2e::{interrupt, scenarios};

const USAGE: &str = "\
usage: cargo xtask e2e [FLAGS] [PART-OF-A-NAME...]

  --list      name the scenarios and run none
  --sandbox   run them on a sandbox instead of a control plane
  --jobs=N    control planes at the same time (default: one for each core, at most 4)
  --peer      let upstream's manager run again what it has passed, and record what it passes
              in e2e/peer-verified.tsv
";

/// More control planes than these would compete for the disk.
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
    let mut plan = Plan { on: On::ControlPlane, jobs: cores.min(MOST_JOBS), peer: PeerRuns::Changed };
    let mut is_list = false;
    for flag in &flags {
        match flag.split_once('=').unwrap_or((flag, "")) {
            ("--list", "") => is_list = true,
            ("--sandbox", "") => plan.on = On::Sandbox,
            ("--peer", "") => plan.peer = PeerRuns::All,
            ("--jobs", number) => plan.jobs = number.parse().with_context(|| format!("`{flag}` needs a number"))?,
            _ => bail!("`{flag}` was not expected\n\n{USAGE}"),
        }
    }
    if plan.jobs == 0 {
        bail!("`--jobs` must be at least 1");
    }
    let selected = select(scenarios::all(), &filters);
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
