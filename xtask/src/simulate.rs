//! Searches of schedules: the scenarios of the simulation in an optimized build, longer than `cargo test` runs them.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::step::{cargo, root, run};

/// The crates whose tests have scenarios.
const PACKAGES: [&str; 7] = [
    "kcm-controllers-api-machinery",
    "kcm-controllers-apps",
    "kcm-controllers-network",
    "kcm-controllers-node",
    "kcm-controllers-resource",
    "kcm-controllers-storage",
    "kcm-simulation-combinations",
];

/// The committed record of searches, with one line for each scenario.
const RECORD: &str = "simulation/runs.tsv";

/// The options of the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    /// A part of the path of a test.
    filter: String,
    /// Environment variables of the tests.
    variables: Vec<(&'static str, String)>,
    is_recorded: bool,
}

/// Searches the scenarios of a controller, or all: `[CONTROLLER] [--runs N] [--minutes M] [--seed S] [--replay FILE]
/// [--planted] [--record]`.
pub(crate) fn simulate(args: &[&str]) -> Result<()> {
    let asked = parse(args)?;
    for package in PACKAGES {
        run(&mut command(package, &asked))?;
    }
    Ok(())
}

fn parse(args: &[&str]) -> Result<Asked> {
    let mut asked = Asked { filter: "tests::simulation".to_owned(), ..Asked::default() };
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
            controller => asked.filter = format!("{controller}::tests::simulation"),
        }
    }
    let is_bounded =
        asked.variables.iter().any(|(name, _)| ["KCM_SIMULATE_RUNS", "KCM_SIMULATE_MINUTES"].contains(name));
    if !is_bounded {
        asked.variables.push(("KCM_SIMULATE_RUNS", "2000".to_owned()));
    }
    Ok(asked)
}

fn command(package: &str, asked: &Asked) -> Command {
    let mut command = cargo(["test", "--profile=simulate", "--lib", "-p", package, &asked.filter]);
    command.args(["--", "--nocapture"]);
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
        assert_eq!(asked.filter, "deployment::tests::simulation");
        let expected = [("KCM_SIMULATE_MINUTES", "5".to_owned()), ("KCM_SIMULATE_SEED", "7".to_owned())];
        assert_eq!((asked.variables, asked.is_recorded), (expected.to_vec(), true));
        assert_eq!(parse(&[]).unwrap().variables, [("KCM_SIMULATE_RUNS", "2000".to_owned())]);
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for args in [&["--runs"][..], &["--runs", "many"], &["--fast"]] {
            assert!(parse(args).is_err(), "{args:?}");
        }
    }
}
