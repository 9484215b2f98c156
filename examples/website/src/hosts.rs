//! The host names, which live outside of the cluster: a file for each in a directory that a web server reads.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::fs;

use crate::website::HostState;

/// The host names that lead to websites. Clones share them.
#[derive(Debug, Clone)]
pub struct Hosts(Place);

#[derive(Debug, Clone)]
enum Place {
    /// Each file is named after a host and contains namespace and name of its website.
    Directory(PathBuf),
    /// The websites by their hosts, for simulations.
    Memory(Arc<Mutex<BTreeMap<String, String>>>),
}

/// A host name that could not be published or freed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The host name is not a DNS name, so that it cannot name a file.
    #[error("{0:?} is not a DNS name: use lower-case letters, digits, hyphens and dots in spec.host")]
    NotDnsName(String),
    /// The file cannot be read or written.
    #[error("cannot use {path}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

impl Hosts {
    /// The host names in a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(Place::Directory(directory.into()))
    }

    /// No host names, kept in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self(Place::Memory(Arc::default()))
    }

    /// Returns the website to which a host leads. `None` for a directory, which has to be read.
    #[must_use]
    pub fn leads_to(&self, host: &str) -> Option<String> {
        match &self.0 {
            Place::Directory(_) => None,
            Place::Memory(websites) => websites.lock().get(host).cloned(),
        }
    }

    /// Makes a host name lead to a website, unless it leads to another. Repeating it changes nothing.
    pub async fn publish(&self, host: &str, website: &str) -> Result<HostState, HostError> {
        check_name(host)?;
        if let Some(other) = self.read(host).await? {
            return Ok(if other == website { HostState::Published } else { HostState::Taken(other) });
        }
        match &self.0 {
            Place::Directory(directory) => {
                let path = directory.join(host);
                fs::write(&path, website).await.map_err(|source| HostError::File { path, source })?;
            }
            Place::Memory(websites) => drop(websites.lock().insert(host.to_owned(), website.to_owned())),
        }
        Ok(HostState::Published)
    }

    /// Frees a host name, if it leads to this website. Repeating it changes nothing.
    pub async fn free(&self, host: &str, website: &str) -> Result<(), HostError> {
        check_name(host)?;
        if self.read(host).await?.as_deref() != Some(website) {
            return Ok(());
        }
        match &self.0 {
            Place::Directory(directory) => {
                let path = directory.join(host);
                fs::remove_file(&path).await.map_err(|source| HostError::File { path, source })?;
            }
            Place::Memory(websites) => drop(websites.lock().remove(host)),
        }
        Ok(())
    }

    async fn read(&self, host: &str) -> Result<Option<String>, HostError> {
        match &self.0 {
            Place::Directory(directory) => read(&directory.join(host)).await,
            Place::Memory(websites) => Ok(websites.lock().get(host).cloned()),
        }
    }
}

fn check_name(host: &str) -> Result<(), HostError> {
    let in_label = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = host.len() < 254 && host.split('.').all(|label| !label.is_empty() && label.bytes().all(in_label));
    if is_name { Ok(()) } else { Err(HostError::NotDnsName(host.to_owned())) }
}

async fn read(path: &Path) -> Result<Option<String>, HostError> {
    match fs::read_to_string(path).await {
        Ok(website) => Ok(Some(website)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(HostError::File { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_host_leads_to_the_first_website_until_that_frees_it() {
        let directory = tempfile::tempdir().unwrap();
        for hosts in [Hosts::new(directory.path()), Hosts::in_memory()] {
            assert_eq!(hosts.publish("a.b", "x/first").await.unwrap(), HostState::Published);
            assert_eq!(hosts.publish("a.b", "x/first").await.unwrap(), HostState::Published);
            assert_eq!(hosts.publish("a.b", "x/second").await.unwrap(), HostState::Taken("x/first".to_owned()));
            hosts.free("a.b", "x/second").await.unwrap();
            hosts.free("a.b", "x/first").await.unwrap();
            hosts.free("a.b", "x/first").await.unwrap();
            assert_eq!(hosts.publish("a.b", "x/second").await.unwrap(), HostState::Published);
        }
    }

    #[tokio::test]
    async fn a_name_that_leaves_the_directory_is_refused() {
        let hosts = Hosts::new("/nonexistent");
        for host in ["", "..", "../a", "a/b", "A.b", "a..b", &"a".repeat(254)] {
            assert!(matches!(hosts.publish(host, "x/y").await, Err(HostError::NotDnsName(_))), "{host}");
        }
    }
}
