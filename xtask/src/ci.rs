//! `cargo xtask ci`: everything that must hold before a change is merged.
//!
//! The cheap checks come first, the control plane and its scenarios last. The e2e suite's closing
//! line (`N passed, 0 failed`) is the last line of a run that succeeded.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{control_plane, e2e, step};

/// Runs every step in order and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    timed("formatting", || step::run(&mut step::cargo(["fmt", "--all", "--check"])))?;
    timed("clippy, warnings denied", || {
        step::run(&mut step::cargo(["clippy", "--workspace", "--all-targets", "--", "--deny=warnings"]))
    })?;
    timed("documentation, warnings denied", || {
        step::run(step::cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny=warnings"))
    })?;
    timed("each crate alone", each_crate_alone)?;
    timed("the controllers without the sandbox", || {
        let lean = ["check", "--package=kcm-controller-manager", "--no-default-features", "--features=builtin"];
        step::run(&mut step::cargo(lean))
    })?;
    timed("tests", || step::run(&mut step::cargo(["test"])))?;
    timed("hosts with a plugin, without and beside the built-in controllers", || {
        let package = "--package=kcm-example-hello-host";
        step::run(&mut step::cargo(["test", package]))?;
        step::run(&mut step::cargo(["test", package, "--features=builtin"]))
    })?;
    timed("dependency rules", dependency_rules)?;
    timed("control plane", control_plane::build)?;
    println!("\n== e2e suite, on a sandbox");
    e2e::suite(&["--sandbox", "ours/"])?;
    println!("\n== e2e suite, on a control plane");
    e2e::suite(&[])
}

/// Checks every member from its own folder: within the workspace a crate can lean on features that
/// another member asked for, as a user of the published crate cannot.
fn each_crate_alone() -> Result<()> {
    for member in members()? {
        step::run(step::cargo(["check", "--quiet"]).current_dir(&member.folder))?;
        if member.has_default_features {
            step::run(step::cargo(["check", "--quiet", "--no-default-features"]).current_dir(&member.folder))?;
        }
    }
    Ok(())
}

/// Licences, sources and duplicates, as `deny.toml` rules them.
fn dependency_rules() -> Result<()> {
    if !step::answers("cargo", &["deny", "--version"]) {
        println!("NOT CHECKED: cargo-deny is not installed, so deny.toml was not applied");
        return Ok(());
    }
    // Advisories are left out: they change without a change of ours.
    step::run(&mut step::cargo(["deny", "check", "bans", "licenses", "sources"]))
}

struct Member {
    folder: PathBuf,
    has_default_features: bool,
}

fn members() -> Result<Vec<Member>> {
    let mut command: Command = step::cargo(["metadata", "--no-deps", "--format-version=1"]);
    let metadata: serde_json::Value =
        serde_json::from_str(&step::output(&mut command)?).context("cannot read what `cargo metadata` printed")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` printed no packages")?;
    packages
        .iter()
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

/// Runs one step under a heading and says how long it took.
fn timed(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("\n== {name}");
    let started = step::now();
    work().with_context(|| format!("step `{name}`"))?;
    println!("== {name}: {} s", started.elapsed().as_secs());
    Ok(())
}
