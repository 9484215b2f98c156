//! `cargo xtask upstream-tests`: runs Kubernetes' own integration tests against our binary.
//!
//! In a copy of the module k8s.io/kubernetes, the `Run` of each controller that we have starts our binary against the
//! test's API server; the rest of the test is unchanged. `xtask/data/upstream-tests.tsv` has the expected
//! result of each test. `--peer` runs upstream's binary instead: a test that fails then cannot test a separate
//! process, and is marked `cannot judge`.

mod source;
mod table;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{control_plane, step};
use source::Source;
use table::{Outcome, Table};

const TABLE: &str = include_str!("../../data/upstream-tests.tsv");

/// The flags of the binary in the tests of a package: `package flags`. Tests set the same values in the
/// configuration of a controller that runs in their own process.
const PACKAGES: &str = include_str!("../../data/upstream-packages.tsv");

/// The packages that `cargo xtask ci` runs: those that end within some minutes together.
const QUICK: [&str; 5] = ["replicaset", "namespace", "garbagecollector", "cronjob", "statefulset"];

const USAGE: &str = "usage: cargo xtask upstream-tests [--peer] PACKAGE... [-- -test.run=REGEX ...]";

/// The options of the command.
struct Options<'a> {
    is_peer: bool,
    /// Whether tests that are expected to fail run too: most of them fail by running out of time.
    runs_failing: bool,
    packages: Vec<&'a str>,
    /// Flags of the test binary.
    flags: &'a [&'a str],
}

impl<'a> Options<'a> {
    fn parse(args: &'a [&'a str]) -> Result<Self> {
        let (own, flags) = match args.iter().position(|arg| *arg == "--") {
            Some(position) => (&args[..position], &args[position + 1..]),
            None => (args, &[][..]),
        };
        let (names, packages): (Vec<&str>, Vec<&str>) = own.iter().partition(|arg| arg.starts_with('-'));
        if let Some(unknown) = names.iter().find(|name| **name != "--peer") {
            bail!("`{unknown}` was not expected\n\n{USAGE}");
        }
        ensure!(!packages.is_empty(), "no package was named\n\n{USAGE}");
        Ok(Self { is_peer: !names.is_empty(), runs_failing: true, packages, flags })
    }
}

/// Runs the tests of the quick packages that are expected to pass, against the binary that `cargo xtask ci` has built.
pub(crate) fn quick() -> Result<()> {
    judge_all(&Options { is_peer: false, runs_failing: false, packages: QUICK.to_vec(), flags: &[] })
}

/// Builds what is missing, runs the packages and compares their results with the table.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let options = Options::parse(args)?;
    control_plane::build()?;
    if !options.is_peer {
        step::run(&mut step::cargo(["build", "--package=kcm-controller-manager"]))?;
    }
    judge_all(&options)
}

fn judge_all(options: &Options) -> Result<()> {
    let program = if options.is_peer {
        control_plane::program("kube-controller-manager")?
    } else {
        step::target().join("debug/kube-controller-manager")
    };
    let folder = step::target().join("upstream-tests");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let source = Source::prepare(&folder)?;
    let mut differences = Vec::new();
    for package in &options.packages {
        let found = judge(&source, &folder, package, &program, options)?;
        differences.extend(found.into_iter().map(|difference| format!("{package}: {difference}")));
    }
    ensure!(
        differences.is_empty(),
        "results differ from xtask/data/upstream-tests.tsv:\n  {}",
        differences.join("\n  ")
    );
    Ok(())
}

/// Runs one package and returns the differences of its results from the table.
fn judge(source: &Source, folder: &Path, package: &str, program: &Path, options: &Options) -> Result<Vec<String>> {
    let tests = source.tests(package)?;
    let mut table = Table::read(TABLE, package)?;
    let skipped = if options.runs_failing { Vec::new() } else { table.take_failing() };
    let name = package.replace('/', "_");
    let binary = folder.join(format!("{name}.test"));
    source.build(package, &binary)?;

    let log = folder.join(format!("{name}.log"));
    let manager_log = folder.join(format!("{name}.manager.log"));
    let file = |path: &PathBuf| File::create(path).with_context(|| format!("cannot write {}", path.display()));
    let output = file(&log)?;
    file(&manager_log)?;
    let errors = output.try_clone().context("cannot write errors to the log")?;
    println!("{package}: running; its output goes to {}, the manager's to {}", log.display(), manager_log.display());
    let started = step::now();
    let mut command = Command::new(&binary);
    command.current_dir(tests).args(["-test.v", "-test.timeout=30m"]).args(options.flags);
    if !skipped.is_empty() {
        command.arg(format!("-test.skip=^({})$", skipped.join("|")));
    }
    command.env("PATH", control_plane::path()?).env("OTHERPROCESS_PROGRAM", program);
    command.env("OTHERPROCESS_LOG", &manager_log).stdout(output).stderr(errors);
    // Bazel's variables, by which the test API server finds its own source although paths are trimmed.
    command.env("TEST_SRCDIR", folder).env("TEST_WORKSPACE", ".");
    // The test's process has the default port.
    let arguments = format!("--secure-port=0 {}", flags_of(PACKAGES, package));
    command.env("OTHERPROCESS_ARGUMENTS", arguments.trim_end());
    // The exit status is ignored, as a single `cannot judge` fails the test binary; the results are read from the log.
    command.status().with_context(|| format!("cannot start {}", binary.display()))?;

    let log = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let results = table::results(&String::from_utf8_lossy(&log));
    let count = |outcome| results.values().filter(|found| **found == outcome).count();
    let (expected, all) = table.counts();
    println!(
        "{package}: {} passed, {} failed, {} skipped in {} s; {expected} of {all} are expected to pass",
        count(Outcome::Passed),
        count(Outcome::Failed),
        count(Outcome::Skipped),
        started.elapsed().as_secs(),
    );
    Ok(table.differences(&results, options.flags.is_empty(), options.is_peer))
}

/// The flags of a package; none if it has no row.
fn flags_of<'a>(rows: &'a str, package: &str) -> &'a str {
    let rows = rows.lines().skip(1).filter_map(|row| row.split_once('\t'));
    rows.filter(|(name, _)| *name == package).map(|(_, flags)| flags).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Options, PACKAGES, QUICK, TABLE, Table, flags_of};

    #[test]
    fn a_package_has_its_flags() {
        let rows = "package\tflags\na\t--x=1 --y=2\n";
        assert_eq!((flags_of(rows, "a"), flags_of(rows, "b")), ("--x=1 --y=2", ""));
        for row in PACKAGES.lines().skip(1) {
            let (package, flags) = row.split_once('\t').expect("a row has two columns");
            assert!(TABLE.lines().any(|test| test.split('\t').next() == Some(package)), "{package} has tests");
            assert!(flags.split(' ').all(|flag| flag.starts_with("--") && flag.contains('=')), "{row}");
        }
    }

    #[test]
    fn flags_of_the_tests_follow_two_dashes() {
        let args = ["--peer", "job", "cronjob", "--", "-test.run=TestA"];
        let options = Options::parse(&args).expect("they are arguments");
        assert!(options.is_peer);
        assert_eq!((options.packages.as_slice(), options.flags), (&args[1..3], &args[4..]));
        assert!(Options::parse(&["--peer"]).is_err());
        assert!(Options::parse(&["--pier", "job"]).is_err());
    }

    #[test]
    fn the_table_is_well_formed() {
        for package in QUICK {
            let (_, all) = Table::read(TABLE, package).expect("every row is well formed").counts();
            assert!(all > 0, "{package} has rows");
        }
    }
}
