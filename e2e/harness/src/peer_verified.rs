//! The record of which scenarios upstream's manager has passed, so that they are not run again for nothing.
//!
//! A scenario that runs for both subjects shows with the peer that its claim is right. That can change only with the
//! scenario, with what it uses of the suite, and with the pinned versions of the control plane: `peer-verified.tsv`
//! holds for each scenario a digest of these files as they were when the peer passed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use aws_lc_rs::digest;

use crate::binaries;
use crate::scenario::Scenario;

/// What every scenario uses of the suite, and the pinned versions.
const USED_BY_ALL: [&str; 8] = [
    "e2e/control-plane/etcd/go.mod",
    "e2e/control-plane/kubernetes/go.mod",
    "e2e/control-plane/kwok/go.mod",
    "e2e/harness/src/control_plane.rs",
    "e2e/harness/src/kubectl.rs",
    "e2e/harness/src/manager.rs",
    "e2e/harness/src/nodes.rs",
    "e2e/harness/src/wait.rs",
];

const HEADER: &str = "# Scenarios that upstream's manager has passed, with a digest of their sources and of the pinned \
                      versions.\n# `cargo xtask e2e --peer` writes this file.\n";

/// Digests by scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerVerified(BTreeMap<String, String>);

impl PeerVerified {
    /// Reads the record; it is empty where there is none.
    pub fn read() -> Result<Self> {
        let path = record();
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).with_context(|| format!("cannot read {}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let rows = rows.map(|line| {
            let (name, digest) = line.split_once('\t').with_context(|| format!("no tab in the row `{line}`"))?;
            Ok((name.to_owned(), digest.to_owned()))
        });
        Ok(Self(rows.collect::<Result<_>>()?))
    }

    /// Whether the peer has passed the scenario with this digest.
    pub fn holds(&self, scenario: &Scenario, digest: &str) -> bool {
        self.0.get(scenario.name).is_some_and(|verified| verified == digest)
    }

    /// Records that the peer has passed the scenario with this digest.
    pub fn insert(&mut self, scenario: &Scenario, digest: String) {
        self.0.insert(scenario.name.to_owned(), digest);
    }

    /// Leaves out what is no longer a scenario of the peer.
    pub fn retain(&mut self, is_scenario: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_scenario(name));
    }

    /// Writes the record.
    pub fn write(&self) -> Result<()> {
        let path = record();
        std::fs::write(&path, self.print()).with_context(|| format!("cannot write {}", path.display()))
    }

    fn print(&self) -> String {
        let rows = self.0.iter().map(|(name, digest)| format!("{name}\t{digest}\n"));
        HEADER.to_owned() + &rows.collect::<String>()
    }
}

fn record() -> PathBuf {
    binaries::root().join("e2e/peer-verified.tsv")
}

/// The digest of a scenario's sources and of what it uses.
pub fn digest(scenario: &Scenario) -> Result<String> {
    let mut files: Vec<PathBuf> = USED_BY_ALL.iter().map(PathBuf::from).collect();
    files.extend(sources(scenario.source)?);
    files.sort_unstable();
    let mut hash = digest::Context::new(&digest::SHA256);
    for file in &files {
        let text =
            std::fs::read(binaries::root().join(file)).with_context(|| format!("cannot read {}", file.display()))?;
        // With names and lengths, two sets of files never read alike.
        hash.update(format!("{} {}\n", file.display(), text.len()).as_bytes());
        hash.update(&text);
    }
    let mut printed = String::new();
    for byte in &hash.finish().as_ref()[..8] {
        write!(printed, "{byte:02x}").context("a string takes everything")?;
    }
    Ok(printed)
}

/// The files of a scenario, from the root of the workspace: the one that declares it, or the whole folder whose `mod.rs`
/// does.
pub fn sources(declared_in: &str) -> Result<Vec<PathBuf>> {
    let file = Path::new(declared_in);
    let mut found = Vec::new();
    match file.parent() {
        Some(folder) if file.ends_with("mod.rs") => gather(folder, &mut found)?,
        _ => found.push(file.to_owned()),
    }
    Ok(found)
}

fn gather(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let within = binaries::root().join(folder);
    for entry in std::fs::read_dir(&within).with_context(|| format!("cannot read {}", within.display()))? {
        let entry = entry.with_context(|| format!("cannot read {}", within.display()))?;
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            gather(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::PeerVerified;
    use crate::scenario::{Scenario, Setup};

    fn scenario(name: &'static str) -> Scenario {
        let run = |_| Box::pin(async { Ok(()) }) as _;
        Scenario { name, setup: Setup::of("replicaset"), source: file!(), run }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let [one, other] = ["replicaset/adopts", "replicaset/creates"].map(scenario);
        let mut record = PeerVerified::default();
        record.insert(&one, "01".to_owned());
        record.insert(&other, "02".to_owned());
        let read = PeerVerified::parse(&record.print()).expect("the record is sound");
        assert_eq!(read, record);
        assert!(read.holds(&one, "01") && !read.holds(&one, "02"));
        assert!(PeerVerified::parse("no tab\n").is_err());
    }
}
