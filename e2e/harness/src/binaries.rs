//! Where the programs under test are found.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// The root of the workspace.
pub fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest)
}

/// The path of a program of the control plane: from `KUBEBUILDER_ASSETS` where it is there, else
/// as `cargo xtask control-plane` built it.
///
/// # Errors
///
/// If neither has it; the message names the command that builds it.
pub fn control_plane(name: &str) -> Result<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty());
    let given = assets.map(|assets| PathBuf::from(assets).join(name));
    let built = root().join(".control-plane/bin").join(name);
    match given {
        Some(given) if given.is_file() => Ok(given),
        _ if built.is_file() => Ok(built),
        Some(given) => bail!(
            "there is no {name}: neither {} (KUBEBUILDER_ASSETS) nor {} exists; build it with `cargo xtask control-plane`",
            given.display(),
            built.display()
        ),
        None => {
            bail!("there is no {name}: {} does not exist; build it with `cargo xtask control-plane`", built.display())
        }
    }
}

/// The file of kwok's stages, by which nodes become ready and pods run.
///
/// # Errors
///
/// If it is not there; the message names the command that gathers it.
pub fn kwok_stages() -> Result<PathBuf> {
    kwok_file("kwok-stages.yaml")
}

/// The file by which kwok says what pods use, as kubelets do.
///
/// # Errors
///
/// If it is not there; the message names the command that gathers it.
pub fn kwok_usage() -> Result<PathBuf> {
    kwok_file("kwok-usage.yaml")
}

fn kwok_file(name: &str) -> Result<PathBuf> {
    let file = root().join(".control-plane").join(name);
    if !file.is_file() {
        bail!("a file of kwok is missing: {} does not exist; run `cargo xtask control-plane`", file.display());
    }
    Ok(file)
}

/// A program of this workspace, as built for release; `E2E_PROFILE` names another folder of `target/` to take it from.
///
/// # Errors
///
/// If it is not there; the message names the command that builds it.
pub fn ours(name: &str, package: &str) -> Result<PathBuf> {
    let profile = std::env::var("E2E_PROFILE").unwrap_or_else(|_| "release".to_owned());
    built(&profile, name, &format!("cargo build --package={package}` and the profile of that folder, as in `--release"))
}

/// A host of the examples, as built for development.
///
/// # Errors
///
/// If it is not there; the message names the command that builds it.
pub fn example_host(name: &str) -> Result<PathBuf> {
    built("debug", name, "cargo xtask e2e")
}

fn built(profile: &str, name: &str, command: &str) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let file = target.join(profile).join(name);
    if !file.is_file() {
        bail!("there is no {}: build it with `{command}`", file.display());
    }
    Ok(file)
}
