//! Lets managers take turns on a lease under load; `cargo xtask failovers` builds what it needs and starts this.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kcm_e2e_failovers::{self as failovers, Fault, Pair, Plan, Report};
use kcm_e2e_harness::interrupt;

const USAGE: &str = "\
usage: cargo xtask failovers [FLAGS]

  --each=N       failovers by each fault (default 5, twenty in all)
  --pods=N       pods of the deployment that is rolled all the time (default 1000)
  --pairs=A,B    of ours, turns and peer (default all; two of upstream's are only terminated)
  --faults=A,B   of term, kill, stop, network and server (default all)
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<bool> {
    let (mut each, mut pods) = (5, 1000);
    let mut chosen = Fault::ALL.to_vec();
    let mut pairs = vec![Pair::Ours, Pair::InTurns, Pair::Peer];
    for arg in std::env::args().skip(1) {
        match arg.split_once('=').unwrap_or((&arg, "")) {
            ("--each", number) => each = number.parse().with_context(|| format!("`{arg}` needs a number"))?,
            ("--pods", number) => pods = number.parse().with_context(|| format!("`{arg}` needs a number"))?,
            ("--pairs", names) => pairs = names.split(',').map(pair).collect::<Result<_>>()?,
            ("--faults", names) => chosen = names.split(',').map(fault).collect::<Result<_>>()?,
            _ => bail!("`{arg}` was not expected\n\n{USAGE}"),
        }
    }
    let lease = Duration::from_secs(15);
    let mut report = Report { outcomes: Vec::new(), lease };
    for pair in pairs {
        let kinds: &[Fault] = if pair == Pair::Peer { &[Fault::Terminated] } else { &chosen };
        let faults = (0..each).flat_map(|_| kinds.iter().copied()).collect();
        let plan = Plan { faults, pods, jobs: false, lease };
        println!("{pair:?}");
        let outcome = interrupt::or(Box::pin(failovers::run(pair, &plan, &|line| println!("  {line}")))).await?;
        for (subject, write) in &outcome.foreign {
            println!("  without the lease, {subject}: {write}");
        }
        for pod in &outcome.surplus {
            println!("  surplus: {pod}");
        }
        report.outcomes.push(outcome);
    }
    println!("\n{}", report.table());
    let violations = report.violations();
    for violation in &violations {
        println!("does not hold: {violation}");
    }
    Ok(violations.is_empty())
}

fn fault(name: &str) -> Result<Fault> {
    let found = Fault::ALL.into_iter().find(|fault| fault.name() == name);
    found.with_context(|| format!("`{name}` is no fault\n\n{USAGE}"))
}

fn pair(name: &str) -> Result<Pair> {
    Ok(match name {
        "ours" => Pair::Ours,
        "turns" => Pair::InTurns,
        "peer" => Pair::Peer,
        _ => bail!("`{name}` is no pair\n\n{USAGE}"),
    })
}
