//! Writes the snapshot of the `RustSec` advisory database that the tests compare `Cargo.lock` with.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::step::{output, root, run, target};

const SNAPSHOT: &str = "controller-manager/tests/data/advisories.tsv";

/// Fewer advisories than the database has: fewer found are a mistake of reading.
const LEAST: usize = 1000;

/// Reads the checked out commit of `clone`, a clone of <https://github.com/rustsec/advisory-db>.
pub(crate) fn write(clone: &str) -> Result<()> {
    let folder = target().join("advisories");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let archive = folder.join("crates.tar");
    // A bare clone has no files.
    run(git(clone).args(["archive", "--output"]).arg(&archive).args(["HEAD", "crates"]))?;
    run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&folder))?;
    let commit = output(git(clone).args(["log", "-1", "--format=commit %H of %cs"]))?;
    let mut rows = Vec::new();
    for file in advisories(&folder.join("crates"))? {
        let text = fs::read_to_string(&file)?;
        rows.extend(row(&text).with_context(|| file.display().to_string())?);
    }
    ensure!(rows.len() >= LEAST, "only {} advisories were found", rows.len());
    rows.sort();
    let mut table = format!(
        "# The RustSec advisory database, {}. `cargo xtask advisories` writes it anew.\n\
         package\tid\tdate\tkind\tversions that are not affected\n",
        commit.trim()
    );
    for row in rows {
        writeln!(table, "{row}")?;
    }
    fs::write(root().join(SNAPSHOT), table)?;
    Ok(())
}

fn git(clone: &str) -> Command {
    let mut git = Command::new("git");
    git.args(["-C", clone]);
    git
}

/// The files of all packages.
fn advisories(crates: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for package in fs::read_dir(crates)? {
        for file in fs::read_dir(package?.path())? {
            files.push(file?.path());
        }
    }
    Ok(files)
}

/// The row of an advisory; none if the advisory was withdrawn.
fn row(text: &str) -> Result<Option<String>> {
    let fields = fields(text)?;
    let values = |name: &str| fields.iter().find(|(it, _)| it == name).map(|(_, values)| values.as_slice());
    let one = |name: &str| match values(name) {
        Some([value]) => Ok(value.as_str()),
        Some(_) | None => bail!("`{name}` is not there once"),
    };
    if values("advisory.withdrawn").is_some() {
        return Ok(None);
    }
    let kind = values("advisory.informational").and_then(<[_]>::first).map_or("vulnerability", String::as_str);
    let patched = values("versions.patched").context("`patched` is not there")?;
    let unaffected = values("versions.unaffected").unwrap_or_default();
    let safe = [unaffected, patched].concat().join(" | ");
    let (package, id, date) = (one("advisory.package")?, one("advisory.id")?, one("advisory.date")?);
    Ok(Some(format!("{package}\t{id}\t{date}\t{kind}\t{safe}")))
}

/// The quoted values of each key in the TOML at the head of an advisory: strings and lists of strings, which are all that a
/// row needs.
fn fields(text: &str) -> Result<Vec<(String, Vec<String>)>> {
    let head = text.split_once("```toml").and_then(|(_, rest)| rest.split_once("```"));
    let (head, _) = head.context("the advisory has no head in TOML")?;
    let (mut section, mut fields) = (String::new(), Vec::<(String, Vec<String>)>::new());
    let mut is_open = false;
    for line in head.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if is_open {
            let (_, values) = fields.last_mut().context("a list has a key")?;
            values.extend(quoted(line));
            is_open = !line.contains(']');
        } else if let Some(name) = line.strip_prefix('[') {
            name.trim_end_matches(']').clone_into(&mut section);
        } else if let Some((key, value)) = line.split_once('=') {
            let value = value.trim();
            fields.push((format!("{section}.{}", key.trim()), quoted(value).collect()));
            is_open = value.starts_with('[') && !value.contains(']');
        }
    }
    Ok(fields)
}

/// The texts between quotation marks; no value of these fields has an escape.
fn quoted(line: &str) -> impl Iterator<Item = String> {
    line.split('"').skip(1).step_by(2).map(str::to_owned)
}
