//! `cargo xtask e2e` and `cargo xtask bench`: our binary on a real control plane, and what one step of it takes.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{control_plane, step};

/// Builds what the scenarios need, then runs those that `args` select.
///
/// The manager is a development build: its debug assertions and overflow checks judge it too, and `cargo xtask ci` has
/// built it for the tests already.
pub(crate) fn suite(args: &[&str]) -> Result<()> {
    if !args.contains(&"--list") {
        if args.contains(&"--older") { control_plane::build_with_older() } else { control_plane::build() }?;
        // The peer's scenarios can be run before ours compiles.
        if args.is_empty() || !args.iter().all(|arg| arg.starts_with("peer/")) {
            step::run(&mut step::cargo(["build", "--package=kcm-controller-manager"]))?;
            example_hosts()?;
        }
    }
    run("scenarios", "suite", args)
}

/// Runs scenarios with the programs that `cargo xtask ci` has built for all of its steps.
pub(crate) fn built_suite(args: &[&str]) -> Result<()> {
    step::run(Command::new(step::target().join("debug/suite")).args(args).env("E2E_PROFILE", "debug"))
}

/// Builds both managers, then measures them beside each other; with `--micro` runs the benchmarks of criterion instead.
pub(crate) fn bench(args: &[&str]) -> Result<()> {
    if args.contains(&"--micro") {
        ensure!(args.len() == 1, "`--micro` stands alone");
        micro()?;
    } else if !args.contains(&"--help") {
        control_plane::build()?;
        if !args.contains(&"--only=peer") {
            step::run(&mut step::cargo(["shipped"]))?;
        }
    }
    step::run(command("bench", "bench", args).env("E2E_PROFILE", "shipped"))
}

/// Builds the shipped manager, then lets managers take turns on a lease.
pub(crate) fn failovers(args: &[&str]) -> Result<()> {
    control_plane::build()?;
    step::run(&mut step::cargo(["shipped"]))?;
    step::run(command("failovers", "failovers", args).env("E2E_PROFILE", "shipped"))
}

/// Runs the benchmarks of criterion, in a folder of their own, which holds no figures of another day.
fn micro() -> Result<()> {
    // What keeps the figures must not fail to build once they are there.
    step::run(&mut step::cargo(["build", "--package=kcm-e2e-bench"]))?;
    let folder = step::root().join("target/criterion-record");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot clear {}", folder.display()))?;
    }
    for package in ["kcm-workqueue", "kcm-api", "kcm-informers", "kcm-controllers-apps"] {
        step::run(step::cargo(["bench", "--package", package]).env("CRITERION_HOME", &folder))?;
    }
    Ok(())
}

/// Runs a control plane until interrupted.
pub(crate) fn serve() -> Result<()> {
    control_plane::build()?;
    run("harness", "serve", &[])
}

/// Builds the hosts of the examples. Hosts without and with built-in controllers need separate builds.
fn example_hosts() -> Result<()> {
    let package = "--package=kcm-example-hello-host";
    step::run(&mut step::cargo(["build", package, "--package=kcm-example-website", "--bins"]))?;
    step::run(&mut step::cargo(["build", package, "--features=builtin", "--bin=hello-beside-builtin"]))
}

fn run(member: &str, bin: &str, args: &[&str]) -> Result<()> {
    step::run(&mut command(member, bin, args))
}

/// A program of the crate in the folder `e2e/MEMBER`.
fn command(member: &str, bin: &str, args: &[&str]) -> Command {
    let package = format!("--package=kcm-e2e-{member}");
    let mut command = step::cargo(["run", "--quiet", &package, "--bin", bin, "--"]);
    command.args(args).env("E2E_PROFILE", "debug");
    command
}
