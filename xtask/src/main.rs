//! The project's commands that are not plain cargo, run as `cargo xtask COMMAND`.
//!
//! Each command is one file. They only start other programs, in order, and stop at the first
//! that fails; what a step does is decided by the program that it starts.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

mod advisories;
mod ci;
mod control_plane;
mod e2e;
mod fuzz;
mod go_types;
mod layout;
mod parity;
mod sandbox_tables;
mod simulate;
mod step;
mod upstream_tests;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci [--full]           everything that must hold before a change is merged; `--full` adds what
                        takes long and what only a release has to pass
  control-plane [--older]
                        build the control plane that the e2e suite runs against; `--older` adds the
                        API server of the minor version before
  e2e [FILTER] [FLAGS]  run the scenarios whose names contain FILTER, as in
                        `ours/`, `peer/` or `replicaset/adopts`; `--list` names them,
                        `--sandbox` runs them on a sandbox instead of a control plane,
                        `--older` on an API server of the minor version before
  fuzz [TARGET] [--seconds=N]
                        look for input that what reads settings or bytes from the network cannot
                        stand; a minute each without the flag. A wrong TARGET lists all
  advisories CLONE      rewrite the snapshot of the RustSec database that tests compare Cargo.lock with,
                        from a clone of https://github.com/rustsec/advisory-db
  parity                compare the committed tables of upstream's flags, gates and controllers
                        with the help of its binary
  upstream-tests [--peer] PACKAGE... [-- -test.run=REGEX]
                        run Kubernetes' own integration tests against our binary and compare
                        with xtask/data/upstream-tests.tsv; `--peer` runs upstream's instead
  simulate [CONTROLLER] [--runs N] [--minutes M] [--seed S] [--replay FILE] [--planted] [--record]
                        search for the schedule that breaks a controller: the budget is for each
                        scenario, `--replay` runs one schedule, `--planted` searches planted bugs,
                        `--record` appends to simulation/runs.tsv
  serve                 run a control plane with nodes until Ctrl-C, to try things by hand
  sandbox-tables        rewrite sandbox/apiserver/data from Kubernetes' discovery and OpenAPI documents
  layout FILE...        place what callgrind has recorded of a manager side by side in the shipped binary
  failovers [FLAGS]     let managers take turns on a lease under load: ours, upstream's, and both
  bench [FLAGS]         measure ours beside the peer; `--help` lists flags and scenarios
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ci"] => ci::run(ci::Extent::Quick),
        ["ci", "--full"] => ci::run(ci::Extent::Full),
        ["control-plane"] => control_plane::build(),
        ["control-plane", "--older"] => control_plane::build_with_older(),
        ["e2e", rest @ ..] => e2e::suite(rest),
        ["fuzz", rest @ ..] => fuzz::fuzz(rest),
        ["sandbox-tables"] => sandbox_tables::write(),
        ["advisories", clone] => advisories::write(clone),
        ["parity"] => parity::run(),
        ["upstream-tests", rest @ ..] => upstream_tests::run(rest),
        ["simulate", rest @ ..] => simulate::simulate(rest),
        ["serve"] => e2e::serve(),
        ["bench", rest @ ..] => e2e::bench(rest),
        ["layout", recordings @ ..] if !recordings.is_empty() => layout::write(recordings),
        ["failovers", rest @ ..] => e2e::failovers(rest),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        ["ci", unknown, ..] => bail!("`{unknown}` was not expected: `ci` takes the flag `--full` alone"),
        ["control-plane" | "parity" | "sandbox-tables" | "serve", extra, ..] => {
            bail!("`{extra}` was not expected: this command takes no arguments")
        }
        ["advisories", ..] => bail!("`advisories` takes one argument, the folder of a clone"),
        [unknown, ..] => bail!("there is no command `{unknown}`\n\n{USAGE}"),
    }
}
