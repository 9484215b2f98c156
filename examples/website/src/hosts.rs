//! The host names, which live outside of the cluster: a file for each in a directory that a web server reads.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tokio::fs;

use crate::website::HostState;

/// A directory of host names. Each file is named after a host and contains namespace and name of its website.
#[derive(Debug, Clone)]
pub struct Hosts(PathBuf);

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
        Self(directory.into())
    }

    /// Makes a host name lead to a website, unless it leads to another. Repeating it changes nothing.
    pub async fn publish(&self, host: &str, website: &str) -> Result<HostState, HostError> {
        let path = self.file(host)?;
        if let Some(other) = read(&path).await? {
            return Ok(if other == website { HostState::Published } else { HostState::Taken(other) });
        }
        fs::write(&path, website).await.map_err(|source| HostError::File { path, source })?;
        Ok(HostState::Published)
    }

    /// Frees a host name, if it leads to this website. Repeating it changes nothing.
    pub async fn free(&self, host: &str, website: &str) -> Result<(), HostError> {
        let path = self.file(host)?;
        if read(&path).await?.as_deref() != Some(website) {
            return Ok(());
        }
        fs::remove_file(&path).await.map_err(|source| HostError::File { path, source })
    }

    fn file(&self, host: &str) -> Result<PathBuf, HostError> {
        let in_label = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = host.len() < 254 && host.split('.').all(|label| !label.is_empty() && label.bytes().all(in_label));
        if is_name { Ok(self.0.join(host)) } else { Err(HostError::NotDnsName(host.to_owned())) }
    }
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
        let hosts = Hosts::new(directory.path());
        assert_eq!(hosts.publish("a.b", "x/first").await.unwrap(), HostState::Published);
        assert_eq!(hosts.publish("a.b", "x/first").await.unwrap(), HostState::Published);
        assert_eq!(hosts.publish("a.b", "x/second").await.unwrap(), HostState::Taken("x/first".to_owned()));
        hosts.free("a.b", "x/second").await.unwrap();
        hosts.free("a.b", "x/first").await.unwrap();
        hosts.free("a.b", "x/first").await.unwrap();
        assert_eq!(hosts.publish("a.b", "x/second").await.unwrap(), HostState::Published);
    }

    #[tokio::test]
    async fn a_name_that_leaves_the_directory_is_refused() {
        let hosts = Hosts::new("/nonexistent");
        for host in ["", "..", "../a", "a/b", "A.b", "a..b", &"a".repeat(254)] {
            assert!(matches!(hosts.publish(host, "x/y").await, Err(HostError::NotDnsName(_))), "{host}");
        }
    }
}
