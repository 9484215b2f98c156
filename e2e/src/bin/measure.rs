//! Measures memory, CPU and requests of both managers; `cargo xtask measure` builds what is needed
//! and starts this.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use kcm_e2e::interrupt;
use kcm_e2e::manager::Subject;
use kcm_e2e::measure::{self, Plan};

const USAGE: &str = "\
usage: cargo xtask measure [FLAGS]

  --only=ours|peer   measure one manager only
  --runs=N           repeat N times and give the median of each figure (default 1)
  --steps=N,M        replica sets of 50 pods there are at each step (default 100,400)
  --json=FILE        write the figures as JSON too
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let mut plan = Plan::default();
    let mut file = None;
    for arg in std::env::args().skip(1) {
        match arg.split_once('=').unwrap_or((&arg, "")) {
            ("--help", _) => {
                print!("{USAGE}");
                return Ok(());
            }
            ("--only", "ours") => plan.subjects = vec![Subject::Ours],
            ("--only", "peer") => plan.subjects = vec![Subject::Peer],
            ("--runs", number) => plan.runs = number.parse().with_context(|| format!("`{arg}` needs a number"))?,
            ("--steps", list) => {
                let steps: Result<Vec<usize>, _> = list.split(',').map(str::parse).collect();
                plan.steps = steps.with_context(|| format!("`{arg}` needs numbers with commas between"))?;
            }
            ("--json", path) if !path.is_empty() => file = Some(path.to_owned()),
            _ => bail!("`{arg}` was not expected\n\n{USAGE}"),
        }
    }
    plan.check()?;
    let report = interrupt::or(measure::run(&plan, &|line| println!("{line}"))).await?;
    println!("\n{}", report.table());
    if let Some(file) = file {
        let text = serde_json::to_string_pretty(&report).context("cannot print the figures as JSON")?;
        std::fs::write(&file, text + "\n").with_context(|| format!("cannot write {file}"))?;
        println!("figures as JSON: {file}");
    }
    Ok(())
}
