//! A certificate and its key: in files, as PEM, and as rustls uses them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// An error in a certificate or its key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// A file cannot be read.
    #[error("cannot read {} of the HTTPS port", .path.display())]
    Read {
        /// The file that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A self-signed pair cannot be written.
    #[error("cannot write the self-signed certificate of the HTTPS port to {}: choose another --cert-dir", .path.display())]
    Write {
        /// The file that cannot be written.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// One file of a pair exists and the other does not.
    #[error("{} exists and {} does not: delete it so that a new pair is created, or add the other file", .there.display(), .missing.display())]
    Half {
        /// The file that exists.
        there: PathBuf,
        /// The file that does not.
        missing: PathBuf,
    },
    /// The content of a file is not a certificate or key.
    #[error("{what} of the HTTPS port in {} cannot be used: it must be PEM", .path.display())]
    Pem {
        /// The expected content of the file.
        what: &'static str,
        /// The file with the wrong content.
        path: PathBuf,
        /// The error of the PEM parser.
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not belong together, or are of a kind that is not supported.
    #[error("the certificate of the HTTPS port in {} cannot be used with its key", .path.display())]
    Mismatch {
        /// The file of the certificate.
        path: PathBuf,
        /// The reason from the TLS library.
        source: rustls::Error,
    },
    /// The system returned no random numbers.
    #[error("cannot create a self-signed certificate for the HTTPS port")]
    Generate(#[source] rcgen::Error),
    /// There is neither a file nor a pair in memory.
    #[error("the HTTPS port has no certificate")]
    Missing,
}

/// A certificate, the certificates of its CAs, and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct KeyPair {
    /// The file of the certificate, for errors.
    pub(super) path: PathBuf,
    pub(super) cert: Vec<u8>,
    pub(super) key: Vec<u8>,
}

impl KeyPair {
    /// Converts the pair for rustls.
    ///
    /// # Errors
    /// If certificate and key do not belong together.
    pub(super) fn certified(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<CertifiedKey>, PairError> {
        let pem = |what, source| PairError::Pem { what, path: self.path.clone(), source };
        let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&self.cert).collect();
        let chain = chain.map_err(|source| pem("the certificate", source))?;
        if chain.is_empty() {
            return Err(pem("the certificate", rustls::pki_types::pem::Error::NoItemsFound));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|source| pem("the key", source))?;
        let certified = CertifiedKey::from_der(chain, key, provider);
        certified.map(Arc::new).map_err(|source| PairError::Mismatch { path: self.path.clone(), source })
    }
}

/// The files of a pair.
#[derive(Debug, Clone)]
pub(super) struct KeyPairFiles {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
}

impl KeyPairFiles {
    pub(super) fn read(&self) -> Result<KeyPair, PairError> {
        let read = |path: &Path| fs::read(path).map_err(|source| PairError::Read { path: path.to_owned(), source });
        Ok(KeyPair { path: self.cert.clone(), cert: read(&self.cert)?, key: read(&self.key)? })
    }
}
