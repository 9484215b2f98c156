//! Measures ours beside the peer, or keeps what criterion measured; `cargo xtask bench` builds and runs what is needed
//! before, and starts this.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use kcm_e2e_bench::{self as bench, Pages, Plan, Record, SCENARIOS, Size};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::{binaries, interrupt};

const USAGE: &str = "\
usage: cargo xtask bench [FLAGS]

  --quick              a tenth of the work, once: for a development loop (the default)
  --full               all of it, five times; of both managers with the usual controllers it is for the record:
                       docs/benchmark.md and its folder
  --scenario=NAME,...  only these
  --controllers=LIST   what both managers run (default deployment,replicaset); later scenarios run their own
  --scale=FACTOR       so many times as many objects in scenarios that run controllers of their own
  --flags=FLAGS        further flags of both managers, separated by spaces
  --only=ours|peer     measure one manager only
  --runs=N             repeat each scenario so often; figures are medians
  --json=FILE          write every figure of every run as JSON too
  --micro              what one step takes instead: the benchmarks of criterion, for the record
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
    let args: Vec<String> = std::env::args().skip(1).collect();
    let size = if args.iter().any(|arg| arg == "--full") { Size::Full } else { Size::Quick };
    let mut plan = Plan::of(size);
    let mut file = None;
    let mut is_micro = false;
    for arg in &args {
        match arg.split_once('=').unwrap_or((arg, "")) {
            ("--help", _) => {
                print!("{USAGE}\nscenarios:\n");
                for scenario in SCENARIOS {
                    println!("  {:<15} {}", scenario.name, scenario.about);
                }
                return Ok(());
            }
            ("--quick" | "--full", "") => {}
            ("--micro", "") => is_micro = true,
            ("--only", "ours") => plan.subjects = vec![Subject::Ours],
            ("--only", "peer") => plan.subjects = vec![Subject::Peer],
            ("--runs", number) => plan.runs = number.parse().with_context(|| format!("`{arg}` needs a number"))?,
            ("--scenario", names) => plan.scenarios = names.split(',').map(str::to_owned).collect(),
            ("--controllers", list) if !list.is_empty() => list.clone_into(&mut plan.controllers),
            ("--scale", factor) => {
                plan.scale = factor.parse().with_context(|| format!("`{arg}` needs a number, such as 0.1"))?;
            }
            ("--flags", flags) if !flags.is_empty() => {
                plan.flags = flags.split_whitespace().map(str::to_owned).collect();
            }
            ("--json", path) if !path.is_empty() => file = Some(path.to_owned()),
            _ => bail!("`{arg}` was not expected\n\n{USAGE}"),
        }
    }
    if is_micro {
        if args.len() > 1 {
            bail!("`--micro` stands alone");
        }
        let micro = bench::micro(&binaries::root().join("target/criterion-record"))?;
        print!("{}", micro.table());
        return keep(micro);
    }
    let usual = Plan::of(Size::Full);
    let is_for_the_record = size == Size::Full
        && plan.subjects == usual.subjects
        && plan.controllers == usual.controllers
        && plan.flags.is_empty()
        && !args.iter().any(|arg| arg.starts_with("--scale"));
    let mut all = Record::default();
    for scenario in plan.selected()? {
        let controllers = scenario.controllers.unwrap_or(&plan.controllers).to_owned();
        let plan = Plan { scenarios: vec![scenario.name.to_owned()], controllers, ..plan.clone() };
        let measured = bench::measured(&plan)?;
        let played = interrupt::or(bench::run(&plan, &measured, &|line| println!("{line}"))).await?;
        println!("{}", played.table());
        // After each scenario: what comes next may take an hour and fail.
        if is_for_the_record {
            keep(played.clone())?;
        }
        all.renew(played);
        if let Some(file) = &file {
            write_json(&all, Path::new(file))?;
        }
    }
    Ok(())
}

/// The folder of the record, from which its pages are made.
fn folder() -> PathBuf {
    binaries::root().join("docs/benchmark")
}

/// Takes new figures into the record.
fn keep(figures: Record) -> Result<()> {
    let mut record = read_record()?;
    record.renew(figures);
    write_record(&record)
}

fn read_record() -> Result<Record> {
    let file = folder().join("record.json");
    match std::fs::read_to_string(&file) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("{} is no record", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Record::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

fn write_json(record: &Record, file: &Path) -> Result<()> {
    let text = serde_json::to_string_pretty(record).context("cannot print the figures as JSON")?;
    std::fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
}

/// Writes the record, its pages and charts, and the headlines of the README.
fn write_record(record: &Record) -> Result<()> {
    let pages = Pages::of(record);
    std::fs::create_dir_all(folder()).context("cannot make docs/benchmark")?;
    write_json(record, &folder().join("record.json"))?;
    let docs = folder().join("..");
    for (name, text) in &pages.files {
        std::fs::write(docs.join(name), text).with_context(|| format!("cannot write docs/{name}"))?;
    }
    let readme = docs.join("../README.md");
    let text = std::fs::read_to_string(&readme).context("cannot read README.md")?;
    let text = pages.with_headlines(&text).context("README.md has no markers for the headlines")?;
    std::fs::write(&readme, text).context("cannot write README.md")?;
    println!("the page: docs/benchmark.md");
    Ok(())
}
