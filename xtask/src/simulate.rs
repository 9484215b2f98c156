//! Searches of schedules: the scenarios of the simulation in an optimized build, longer than `cargo test` runs them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::step::{cargo, root, run, target};

/// Part of the paths of the tests with scenarios. The path of an example names no controller.
const TESTS: &str = "tests::simulation";

/// The committed record of searches, with one line for each scenario.
const RECORD: &str = "simulation/runs.tsv";

/// The options of the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    /// The controller or example; all without one.
    subject: Option<String>,
    /// Environment variables of the tests.
    variables: Vec<(&'static str, String)>,
    is_recorded: bool,
}

/// Searches the scenarios of a controller, or all: `[CONTROLLER] [--runs N] [--minutes M] [--seed S] [--replay FILE]
/// [--planted] [--record]`.
pub(crate) fn simulate(args: &[&str]) -> Result<()> {
    let asked = parse(args)?;
    let packages = packages()?;
    let example = asked.subject.as_ref().map(|subject| format!("kcm-example-{subject}"));
    let (packages, filter) = match (&asked.subject, example) {
        (Some(_), Some(example)) if packages.contains(&example) => (vec![example], TESTS.to_owned()),
        (Some(controller), _) => (packages, format!("{controller}::{TESTS}")),
        (None, _) => (packages, TESTS.to_owned()),
    };
    run(&mut command(&packages, &filter, &asked))
}

/// Searches each scenario in so many runs, with the test binaries that a build of the workspace with `features` has, and
/// prints a table.
///
/// A number of runs and not a time: the same runs follow on every machine.
pub(crate) fn each(runs: u32, features: &str) -> Result<()> {
    let record = target().join("simulate.tsv");
    if record.exists() {
        std::fs::remove_file(&record).with_context(|| format!("cannot remove {}", record.display()))?;
    }
    let mut search = cargo(["test", "--quiet", "--workspace", features, "--lib", TESTS, "--", "--nocapture"]);
    search.env("KCM_SIMULATE_RUNS", runs.to_string()).env("KCM_SIMULATE_RECORD", &record);
    let result = run(&mut search);
    let found = table(&std::fs::read_to_string(&record).unwrap_or_default());
    ensure!(result.is_err() || found.lines().count() > 1, "no test of the workspace has a scenario");
    println!("{found}");
    result
}

/// The lines of a record of searches as a table.
fn table(record: &str) -> String {
    let mut rows = vec![["scenario", "runs", "states", "ends", "failures", "ms/run"].map(str::to_owned)];
    for line in record.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [scenario, _, runs, states, _, ends, failures, millis] = fields[..] else { continue };
        let each = millis.parse::<u64>().unwrap_or_default() / runs.parse::<u64>().unwrap_or(1).max(1);
        rows.push([scenario, runs, states, ends, failures, &each.to_string()].map(str::to_owned));
    }
    let width = rows.iter().map(|row| row[0].len()).max().unwrap_or_default();
    let line = |row: &[String; 6]| {
        let first = format!("{:width$}", row[0]);
        row[1..].iter().fold(first, |line, number| format!("{line}{number:>10}"))
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The packages whose tests have scenarios.
fn packages() -> Result<Vec<String>> {
    let mut packages = Vec::new();
    for (folder, prefix) in [("controllers", "kcm-controllers-"), ("examples", "kcm-example-")] {
        let folder = root().join(folder);
        let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            if has_scenarios(&entry.path().join("src"))? {
                packages.push(format!("{prefix}{}", entry.file_name().to_string_lossy().replace('_', "-")));
            }
        }
    }
    packages.sort();
    Ok(packages)
}

/// Returns `true` if a folder has a module `simulation` of tests beneath it.
fn has_scenarios(folder: &Path) -> Result<bool> {
    if !folder.is_dir() {
        return Ok(false);
    }
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let is_module = path.file_stem().is_some_and(|stem| stem == "simulation");
        if (is_module && folder.ends_with("tests")) || has_scenarios(&path)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn parse(args: &[&str]) -> Result<Asked> {
    let mut asked = Asked::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = |name| rest.next().map(ToString::to_string).with_context(|| format!("{name} expects a value"));
        let mut number = |name| {
            let text = value(name)?;
            text.parse::<u64>().with_context(|| format!("{name} expects a number, not `{text}`"))
        };
        match *arg {
            "--runs" => asked.variables.push(("KCM_SIMULATE_RUNS", number("--runs")?.to_string())),
            "--minutes" => asked.variables.push(("KCM_SIMULATE_MINUTES", number("--minutes")?.to_string())),
            "--seed" => asked.variables.push(("KCM_SIMULATE_SEED", number("--seed")?.to_string())),
            "--replay" => {
                let file = std::path::absolute(value("--replay")?).context("cannot find the working folder")?;
                asked.variables.push(("KCM_SIMULATE_REPLAY", file.display().to_string()));
            }
            "--planted" => asked.variables.push(("KCM_SIMULATE_PLANTED", "1".to_owned())),
            "--record" => asked.is_recorded = true,
            flag if flag.starts_with('-') => bail!("`{flag}` is no flag of `simulate`"),
            subject => asked.subject = Some(subject.to_owned()),
        }
    }
    let is_bounded =
        asked.variables.iter().any(|(name, _)| ["KCM_SIMULATE_RUNS", "KCM_SIMULATE_MINUTES"].contains(name));
    // The table of planted bugs holds for a number of runs that the tests know.
    let is_planted = asked.variables.iter().any(|(name, _)| *name == "KCM_SIMULATE_PLANTED");
    if !is_bounded && !is_planted {
        asked.variables.push(("KCM_SIMULATE_RUNS", "2000".to_owned()));
    }
    Ok(asked)
}

fn command(packages: &[String], filter: &str, asked: &Asked) -> Command {
    let mut command = cargo(["test", "--profile=simulate", "--lib", filter]);
    command.args(packages.iter().map(|package| format!("--package={package}"))).args(["--", "--nocapture"]);
    command.envs(asked.variables.iter().map(|(name, value)| (name, value.as_str())));
    if asked.is_recorded {
        command.env("KCM_SIMULATE_RECORD", root().join(RECORD));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_a_filter_and_variables() {
        let asked = parse(&["deployment", "--minutes", "5", "--seed", "7", "--record"]).unwrap();
        assert_eq!(asked.subject.as_deref(), Some("deployment"));
        let expected = [("KCM_SIMULATE_MINUTES", "5".to_owned()), ("KCM_SIMULATE_SEED", "7".to_owned())];
        assert_eq!((asked.variables, asked.is_recorded), (expected.to_vec(), true));
        assert_eq!(parse(&[]).unwrap().variables, [("KCM_SIMULATE_RUNS", "2000".to_owned())]);
        assert_eq!(parse(&["--planted"]).unwrap().variables, [("KCM_SIMULATE_PLANTED", "1".to_owned())]);
    }

    #[test]
    fn the_crate_of_each_controller_with_a_scenario_is_searched() {
        assert!(packages().unwrap().iter().any(|package| package == "kcm-controllers-apps"));
    }

    #[test]
    fn the_table_has_a_row_for_each_search() {
        let record = "job counted\t1\t500\t396\t110\t6\t0\t17122\n";
        let lines: Vec<String> = table(record).lines().map(str::to_owned).collect();
        assert_eq!(
            lines,
            [
                "scenario         runs    states      ends  failures    ms/run",
                "job counted       500       396         6         0        34",
            ]
        );
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for args in [&["--runs"][..], &["--runs", "many"], &["--fast"]] {
            assert!(parse(args).is_err(), "{args:?}");
        }
    }
}
