//! Fuzzing of what reads settings, guided by coverage. The targets are in `fuzz/`, and what they check in
//! `config/tests/targets`.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step::{cargo, output, root, run, target};

const TARGETS: [&str; 4] = ["duration", "flags", "file", "gates"];

/// The flags of cargo-fuzz without a sanitizer: sanitizers need a nightly compiler, and there is no unsafe code.
const INSTRUMENTED: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Runs a target, or each of them, for so many seconds: `[TARGET] [--seconds=N]`.
pub(crate) fn fuzz(args: &[&str]) -> Result<()> {
    let (mut seconds, mut targets) = (60, TARGETS.to_vec());
    for arg in args {
        match (arg.strip_prefix("--seconds="), TARGETS.iter().find(|target| *target == arg)) {
            (Some(number), _) => seconds = number.parse().context("--seconds expects a number")?,
            (None, Some(target)) => targets = vec![target],
            (None, None) => bail!("there is no target `{arg}`, only {}", TARGETS.join(", ")),
        }
    }
    let folder = target().join("fuzz");
    let host = host()?;
    let mut build = cargo(["build", "--release", "--manifest-path=fuzz/Cargo.toml"]);
    // With a target, build scripts and macros stay without the instruments.
    build.args(["--target", &host]).arg("--target-dir").arg(&folder);
    run(build.env("RUSTFLAGS", INSTRUMENTED))?;
    for name in targets {
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
            .arg(root().join("config/tests/inputs").join(name));
        run(&mut command).with_context(|| {
            format!(
                "what it found is in {}: mend it, and keep the input in config/tests/inputs/{name}",
                found.display()
            )
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
