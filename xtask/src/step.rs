//! Starting other programs and saying which one failed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// The folder in which cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The cargo that started this program, so that the pinned toolchain is kept.
pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(args);
    command
}

/// Prints a command, runs it on this terminal and waits for it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    println!("$ {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs a command and returns what it wrote to its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` wrote something that is not UTF-8"))
}

/// Returns `true` if the program can be started and succeeds with `args`.
pub(crate) fn answers(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .current_dir(root())
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The time, to say afterwards how long a step took.
#[expect(clippy::disallowed_methods, reason = "other programs do the work here: there is no clock to pause")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the command as typed in a shell, with its folder if that is not the root.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(program).chain(command.get_args()).map(|word| {
        let word = word.to_string_lossy();
        if word.contains(' ') { format!("'{word}'") } else { word.into_owned() }
    });
    let line = words.collect::<Vec<_>>().join(" ");
    match command.get_current_dir().map(|dir| dir.strip_prefix(root())) {
        Some(Ok(folder)) if !folder.as_os_str().is_empty() => {
            format!("(cd {} && {line})", folder.display())
        }
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{cargo, line, root};

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = cargo(["doc", "--workspace"]);
        assert!(line(&command).ends_with("cargo doc --workspace"));
        command.arg("two words").current_dir(root().join("api"));
        assert!(line(&command).ends_with("'two words')"));
        assert!(line(&command).starts_with("(cd api && "));
    }
}
