//! The CAs whose certificates count now, from files and from the cluster.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::DistinguishedName;

use super::authorities::{Authorities, BundleError};
use super::cluster_config::ClusterConfig;
use super::request_header::HeaderNames;

/// Source of the CAs of clients, or of front proxies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BundleSource {
    /// A file in PEM.
    File(PathBuf),
    /// The cluster's config map.
    Cluster,
    /// Nowhere: no certificate counts.
    None,
}

/// An error in a file with CAs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// It cannot be read.
    #[error("cannot read the client CAs in {}", .path.display())]
    Read {
        /// The file of the bundle.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Its content cannot be used.
    #[error("cannot use the client CAs in {}", .path.display())]
    Bundle {
        /// The file of the bundle.
        path: PathBuf,
        /// The reason why the bundle is invalid.
        source: BundleError,
    },
}

/// Whose certificates count now.
#[derive(Debug, Clone, Default)]
pub(super) struct Trusted {
    /// The CAs of clients.
    pub(super) clients: Option<Arc<Authorities>>,
    /// The CAs of front proxies, and the headers in which the proxies name users.
    pub(super) proxies: Option<(Arc<Authorities>, Arc<HeaderNames>)>,
}

/// The CAs whose certificates count now, from files and from the cluster.
///
/// # Guarantees
/// An invalid bundle changes nothing: the last valid bundle counts until there is another.
#[derive(Debug)]
pub(crate) struct Trust {
    clients: BundleSource,
    proxies: BundleSource,
    /// Headers of front proxies, if flags and not the cluster name their CAs.
    headers: Arc<HeaderNames>,
    now: RwLock<Trusted>,
}

impl Trust {
    /// Nothing yet; files are read by [`reload`](Self::reload).
    pub(super) fn new(clients: BundleSource, proxies: BundleSource, headers: HeaderNames) -> Self {
        Self { clients, proxies, headers: Arc::new(headers), now: RwLock::default() }
    }

    pub(super) fn now(&self) -> Trusted {
        self.now.read().clone()
    }

    /// Returns the CAs whose certificates clients are asked for, or `None` if no certificate can ever count.
    pub(crate) fn subjects(&self) -> Option<Vec<DistinguishedName>> {
        if self.clients == BundleSource::None && self.proxies == BundleSource::None {
            return None;
        }
        let now = self.now();
        let clients = now.clients.iter().flat_map(|authorities| authorities.subjects());
        let proxies = now.proxies.iter().flat_map(|(authorities, _)| authorities.subjects());
        Some(clients.chain(proxies).cloned().collect())
    }

    /// Reads the files again; returns whether anything has changed.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub(crate) fn reload(&self) -> Result<bool, TrustError> {
        let mut changed = false;
        if let BundleSource::File(path) = &self.clients {
            let known = self.now().clients;
            if let Some(read) = read_file(path, known.as_deref())? {
                self.now.write().clients = Some(Arc::new(read));
                changed = true;
            }
        }
        if let BundleSource::File(path) = &self.proxies {
            let known = self.now().proxies.map(|(authorities, _)| authorities);
            if let Some(read) = read_file(path, known.as_deref())? {
                self.now.write().proxies = Some((Arc::new(read), Arc::clone(&self.headers)));
                changed = true;
            }
        }
        Ok(changed)
    }

    /// Takes settings from the cluster's `ConfigMap` unless a flag has set them.
    pub(super) fn follow(&self, config: &ClusterConfig) {
        if self.clients == BundleSource::Cluster
            && let Some(read) = read_cluster(&config.client_ca, self.now().clients.as_deref())
        {
            self.now.write().clients = Some(Arc::new(read));
        }
        if self.proxies == BundleSource::Cluster {
            let known = self.now().proxies;
            let authorities = known.as_ref().map(|(authorities, _)| authorities);
            let read = read_cluster(&config.request_header_ca, authorities.map(|known| &**known)).map(Arc::new);
            if let Some(authorities) = read.as_ref().or(authorities) {
                self.now.write().proxies = Some((Arc::clone(authorities), Arc::new(config.headers.clone())));
            }
        }
    }
}

/// Reads the bundle in a file. Returns `None` if it has not changed.
fn read_file(path: &Path, known: Option<&Authorities>) -> Result<Option<Authorities>, TrustError> {
    let pem = std::fs::read(path).map_err(|source| TrustError::Read { path: path.to_owned(), source })?;
    if known.is_some_and(|known| known.are(&pem)) {
        return Ok(None);
    }
    let read = Authorities::read(&pem).map_err(|source| TrustError::Bundle { path: path.to_owned(), source })?;
    Ok(Some(read))
}

/// Reads the bundle in the `ConfigMap`. Returns `None` if it has not changed, is missing, or cannot be used.
fn read_cluster(pem: &str, known: Option<&Authorities>) -> Option<Authorities> {
    if pem.is_empty() || known.is_some_and(|known| known.are(pem.as_bytes())) {
        return None;
    }
    match Authorities::read(pem.as_bytes()) {
        Ok(read) => Some(read),
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "Cannot use the client CAs in the cluster's configuration; keeping the current ones");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    fn authority() -> String {
        let mut params = CertificateParams::new(Vec::new()).expect("there are no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("there is randomness");
        params.self_signed(&key).expect("it can be signed").pem()
    }

    #[test]
    fn a_file_that_cannot_be_used_leaves_the_known_authorities() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let path = folder.path().join("ca.crt");
        let trust = Trust::new(BundleSource::File(path.clone()), BundleSource::None, HeaderNames::default());
        assert!(trust.reload().is_err(), "there is no file");
        let (first, second) = (authority(), authority());
        for (content, changes) in
            [(&first, Some(true)), (&first, Some(false)), (&String::new(), None), (&second, Some(true))]
        {
            std::fs::write(&path, content).expect("there is room for a file");
            assert_eq!(trust.reload().ok(), changes);
            assert!(trust.now().clients.is_some() && trust.now().proxies.is_none());
        }
        assert!(trust.now().clients.is_some_and(|known| known.are(second.as_bytes())));
        assert_eq!(trust.subjects().map(|subjects| subjects.len()), Some(1));
    }

    #[test]
    fn the_cluster_gives_only_what_flags_do_not() {
        let file = Trust::new(BundleSource::File("none".into()), BundleSource::Cluster, HeaderNames::default());
        let headers = HeaderNames { username: vec!["x-user".to_owned()], ..HeaderNames::default() };
        let config = ClusterConfig { client_ca: authority(), request_header_ca: authority(), headers: headers.clone() };
        file.follow(&config);
        assert!(file.now().clients.is_none());
        let (_, taken) = file.now().proxies.expect("the cluster has them");
        assert_eq!(*taken, headers);

        // The CAs may be removed or become invalid; the headers change with the ConfigMap.
        let other = HeaderNames { username: vec!["x-other".to_owned()], ..HeaderNames::default() };
        for broken in ["", "broken"] {
            file.follow(&ClusterConfig {
                request_header_ca: broken.to_owned(),
                headers: other.clone(),
                ..config.clone()
            });
            let (authorities, taken) = file.now().proxies.expect("they stay");
            assert!(authorities.are(config.request_header_ca.as_bytes()));
            assert_eq!(*taken, other);
        }
    }

    #[test]
    fn clients_are_asked_for_certificates_only_if_some_may_count() {
        let trust = |clients, proxies| Trust::new(clients, proxies, HeaderNames::default()).subjects();
        assert!(trust(BundleSource::None, BundleSource::None).is_none());
        assert!(trust(BundleSource::Cluster, BundleSource::None).is_some_and(|subjects| subjects.is_empty()));
    }
}
