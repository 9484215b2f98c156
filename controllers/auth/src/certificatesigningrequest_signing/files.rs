//! The files of a certificate authority, read again and again.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use jiff::Timestamp;
use parking_lot::Mutex;
use zeroize::Zeroizing;

use super::metrics::Metrics;
use super::pair::Pair;
use crate::shared::FileFailure;
use crate::shared::x509::{Authority, AuthorityError};

/// A pair of files that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// A file cannot be read.
    #[error("cannot read the file {path:?} of a CA: check its path and permissions")]
    Unreadable {
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The files are no CA.
    #[error("cannot sign with the CA of {certificate:?} and {key:?}")]
    Invalid {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The rule that they violate.
        source: AuthorityError,
    },
}

/// A certificate authority that follows its files.
pub(super) struct AuthorityFiles {
    pair: Pair,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Authority>>,
    /// Digest of the content that was read last, valid or not.
    digest: Option<[u8; 32]>,
    failure: Option<FileFailure>,
}

impl fmt::Debug for AuthorityFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorityFiles").field("pair", &self.pair).finish_non_exhaustive()
    }
}

impl AuthorityFiles {
    pub(super) fn new(pair: Pair) -> Self {
        Self { pair, state: Mutex::default() }
    }

    /// Returns the pair that signs; `None` if there never was a valid one.
    pub(super) fn current(&self) -> Option<Arc<Authority>> {
        self.state.lock().current.clone()
    }

    /// Reads the files, and replaces the pair that signs if they have changed and are valid.
    pub(super) fn reload(&self, now: Timestamp, metrics: &Metrics) {
        let mut state = self.state.lock();
        let failure = match self.load(&mut state) {
            Ok(true) => {
                let ends = state.current.as_ref().map(|authority| authority.not_after().to_string());
                tracing::info!(certificate = ?self.pair.certificate, ends, "Loaded the CA that signs certificates");
                None
            }
            Ok(false) => None,
            Err(error) => {
                let text = kcm_framework::error_chain(&error);
                let (failure, is_logged) = FileFailure::follow(state.failure.take(), text, now);
                if is_logged {
                    let (error, signs) = (failure.text(), state.current.is_some());
                    tracing::error!(error, signs, "Cannot load a CA; keeping the previous one, if there is one");
                }
                Some(failure)
            }
        };
        metrics.show(&self.pair, failure.as_ref().map(FileFailure::since));
        state.failure = failure;
    }

    /// Returns `true` if another pair signs now.
    fn load(&self, state: &mut State) -> Result<bool, LoadError> {
        let (certificate, key) = (read(&self.pair.certificate)?, read(&self.pair.key)?);
        let digest = digest(&certificate, &key);
        if state.digest == Some(digest) && state.failure.is_none() {
            return Ok(false);
        }
        let authority = Authority::from_pem(&certificate, &key).map_err(|source| {
            let Pair { certificate, key } = self.pair.clone();
            LoadError::Invalid { certificate, key, source }
        })?;
        state.digest = Some(digest);
        state.current = Some(Arc::new(authority));
        Ok(true)
    }
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, LoadError> {
    let content = std::fs::read(path).map_err(|source| LoadError::Unreadable { path: path.to_owned(), source })?;
    Ok(Zeroizing::new(content))
}

fn digest(certificate: &[u8], key: &[u8]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    context.update(&certificate.len().to_be_bytes());
    context.update(certificate);
    context.update(key);
    context.finish().as_ref().try_into().unwrap_or_default()
}
