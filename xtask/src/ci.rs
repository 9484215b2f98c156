//! `cargo xtask ci`: everything that must hold before a change is merged.
//!
//! The cheap checks come first, the control plane and its scenarios last. Cargo compiles a crate again for each set of
//! features, and a selection of packages decides the features of all. So there are two selections only: the whole
//! workspace with all targets (clippy, then the build that tests and scenarios share), and each published crate alone
//! (checked, not built).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::{control_plane, e2e, parity, step, upstream_tests};

/// The workspace with all targets, and with the example host that runs beside the built-in controllers.
const WHOLE: [&str; 3] = ["--workspace", "--all-targets", "--features=kcm-example-hello-host/builtin"];

/// Runs every step in order, stops at the first that fails, and prints how long each took.
///
/// The suite's closing line (`N passed, 0 failed`) comes last in a run that succeeded.
pub(crate) fn run() -> Result<()> {
    let mut times = Times::default();
    let result = steps(&mut times);
    if result.is_err() {
        times.print();
    }
    result
}

fn steps(times: &mut Times) -> Result<()> {
    times.step("formatting", || step::run(&mut step::cargo(["fmt", "--all", "--check"])))?;
    times.step("clippy, warnings denied", || {
        step::run(step::cargo(["clippy"]).args(WHOLE).args(["--", "--deny=warnings"]))
    })?;
    times.step("documentation, warnings denied", || {
        step::run(step::cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny=warnings"))
    })?;
    times.step("each published crate alone", each_crate_alone)?;
    times.step("build", || step::run(step::cargo(["build"]).args(WHOLE)))?;
    times.step("tests", || {
        // The documentation's test then asks every test binary which tests it has.
        step::run(step::cargo(["test", "--workspace"]).arg(WHOLE[2]).env("WORKSPACE_IS_BUILT", "1"))
    })?;
    times.step("control plane", control_plane::build)?;
    times.step("tables of upstream's flags, gates and controllers", parity::run)?;
    times.step("upstream's integration tests, quick packages", upstream_tests::quick)?;
    times.step("e2e suite, on a sandbox", || e2e::built_suite(&["--sandbox", "ours/"]))?;
    // The table stands before the suite on a control plane, so that the suite's closing line is the last one.
    times.print();
    times.step("e2e suite, on a control plane", || e2e::built_suite(&[]))
}

/// Checks every member that is published with its own features: within the workspace a crate can lean on features that
/// another member asked for, as a user of the published crate cannot.
fn each_crate_alone() -> Result<()> {
    for member in published()? {
        step::run(step::cargo(["check", "--quiet"]).current_dir(&member.folder))?;
        if member.has_default_features {
            step::run(step::cargo(["check", "--quiet", "--no-default-features"]).current_dir(&member.folder))?;
        }
    }
    // The product without the sandbox.
    let lean =
        ["check", "--quiet", "--package=kcm-controller-manager", "--no-default-features", "--features=builtin,pprof"];
    step::run(&mut step::cargo(lean))
}

/// A member of the workspace that others can depend on.
struct Member {
    folder: PathBuf,
    has_default_features: bool,
}

fn published() -> Result<Vec<Member>> {
    let mut command: Command = step::cargo(["metadata", "--no-deps", "--format-version=1"]);
    let metadata: serde_json::Value =
        serde_json::from_str(&step::output(&mut command)?).context("cannot read what `cargo metadata` printed")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` printed no packages")?;
    // `publish = false` is an empty list of registries.
    let published = packages.iter().filter(|package| package["publish"].as_array().is_none_or(|it| !it.is_empty()));
    published
        .map(|package| {
            let manifest =
                package["manifest_path"].as_str().context("`cargo metadata` printed a package without a manifest")?;
            Ok(Member {
                folder: Path::new(manifest).parent().context("a manifest lies in no folder")?.to_path_buf(),
                has_default_features: package["features"]["default"]
                    .as_array()
                    .is_some_and(|features| !features.is_empty()),
            })
        })
        .collect()
}

/// The duration of each step.
#[derive(Default)]
struct Times {
    steps: Vec<(&'static str, Duration)>,
}

impl Times {
    /// Runs one step under a heading, prints its time and keeps it.
    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("\n== {name}");
        let started = step::now();
        let result = work().with_context(|| format!("step `{name}`"));
        let took = started.elapsed();
        self.steps.push((name, took));
        // The suite's closing line stays the last one.
        if result.is_err() || !name.ends_with("on a control plane") {
            println!("== {name}: {}", shown(took));
        }
        result
    }

    fn print(&self) {
        println!("\n{}", self.table());
    }

    fn table(&self) -> String {
        let total = self.steps.iter().map(|(_, took)| *took).sum();
        let rows = self.steps.iter().copied().chain([("in all", total)]);
        rows.map(|(name, took)| format!("{:>8}  {name}", shown(took))).collect::<Vec<_>>().join("\n")
    }
}

fn shown(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Times;

    #[test]
    fn the_table_ends_with_the_sum() {
        let steps = vec![("formatting", Duration::from_secs(3)), ("tests", Duration::from_secs(62))];
        assert_eq!(Times { steps }.table(), "    0:03  formatting\n    1:02  tests\n    1:05  in all");
    }
}
