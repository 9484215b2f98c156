//! Fuzzing of what reads settings, expressions and bytes from the network, guided by coverage. The targets are in `fuzz/`,
//! and what they check in the `targets` of the crates that they test.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step::{cargo, output, root, run, target};

/// A program in `fuzz/`.
struct Target {
    name: &'static str,
    /// Inputs that it starts with, by folder. What it has found is kept in the first one.
    inputs: &'static [&'static str],
}

const TARGETS: [Target; 13] = [
    Target { name: "duration", inputs: &["config/tests/inputs/duration"] },
    Target { name: "flags", inputs: &["config/tests/inputs/flags"] },
    Target { name: "file", inputs: &["config/tests/inputs/file"] },
    Target { name: "gates", inputs: &["config/tests/inputs/gates"] },
    Target { name: "views", inputs: &["api/tests/inputs/views", "api/fixtures"] },
    Target { name: "documents", inputs: &["api/tests/inputs/documents", "api/fixtures"] },
    Target { name: "selectors", inputs: &["api/tests/inputs/selectors"] },
    Target { name: "watch", inputs: &["informers/tests/inputs/watch", "informers/fixtures"] },
    Target { name: "envelopes", inputs: &["informers/tests/inputs/envelopes", "informers/fixtures"] },
    Target { name: "percent", inputs: &["serving/src/tests/inputs/percent"] },
    Target { name: "certificates", inputs: &["serving/src/tests/inputs/certificates"] },
    Target { name: "expressions", inputs: &["cel/tests/inputs/expressions"] },
    Target { name: "patterns", inputs: &["cel/tests/inputs/patterns"] },
];

/// The flags of cargo-fuzz without a sanitizer: sanitizers need a nightly compiler, and there is no unsafe code.
const INSTRUMENTED: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Runs a target, or each of them, for so many seconds: `[TARGET] [--seconds=N]`.
pub(crate) fn fuzz(args: &[&str]) -> Result<()> {
    let (mut seconds, mut targets) = (60, TARGETS.iter().collect::<Vec<_>>());
    for arg in args {
        match (arg.strip_prefix("--seconds="), TARGETS.iter().find(|target| target.name == *arg)) {
            (Some(number), _) => seconds = number.parse().context("--seconds expects a number")?,
            (None, Some(target)) => targets = vec![target],
            (None, None) => {
                let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
                bail!("there is no target `{arg}`, only {}", names.join(", "))
            }
        }
    }
    let folder = target().join("fuzz");
    let host = host()?;
    let mut build = cargo(["build", "--release", "--manifest-path=fuzz/Cargo.toml"]);
    // With a target, build scripts and macros stay without the instruments.
    build.args(["--target", &host]).arg("--target-dir").arg(&folder);
    run(build.env("RUSTFLAGS", INSTRUMENTED))?;
    for Target { name, inputs } in targets {
        let (corpus, found) = (folder.join("corpus").join(name), folder.join("found").join(name));
        fs::create_dir_all(&corpus)?;
        fs::create_dir_all(&found)?;
        let program = folder.join(&host).join("release").join(name);
        let mut command = Command::new(program);
        command
            .args(["-max_len=65536", "-rss_limit_mb=512", "-malloc_limit_mb=64", "-timeout=10", "-print_final_stats=1"])
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", found.display()))
            .arg(corpus)
            .args(inputs.iter().map(|folder| root().join(folder)));
        run(&mut command).with_context(|| {
            let kept = inputs.first().copied().unwrap_or_default();
            format!("what it found is in {}: mend it, and keep the input in {kept}", found.display())
        })?;
    }
    Ok(())
}

/// The platform of the compiler.
fn host() -> Result<String> {
    let version = output(Command::new("rustc").current_dir(root()).arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}
