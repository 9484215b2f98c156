//! Runs the scenarios; `cargo xtask e2e` builds what they need and starts this.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

use std::process::ExitCode;

use anyhow::{Result, bail};
use kcm_e2e::suite::{self, On, Outcome};
use kcm_e2e::{interrupt, scenarios};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(Some(Outcome { passed, failed })) => {
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
    let selected = suite::select(scenarios::all(), &filters);
    if selected.is_empty() {
        bail!("no scenario's name contains any of {filters:?}: `cargo xtask e2e --list` names them all");
    }
    match flags.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => interrupt::or(suite::run(On::ControlPlane, &selected, &|line| println!("{line}"))).await.map(Some),
        ["--sandbox"] => interrupt::or(suite::run(On::Sandbox, &selected, &|line| println!("{line}"))).await.map(Some),
        ["--list"] => {
            for it in &selected {
                println!("{}", it.name());
            }
            Ok(None)
        }
        unknown => bail!("unknown flags {unknown:?}: there are only `--list` and `--sandbox`"),
    }
}
