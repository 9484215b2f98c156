//! The root CA that is published in every namespace, in trust bundles and in tokens.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use kcm_framework::client::ClientAuthority;
use kcm_framework::config::{Section, Setting};
use kcm_framework::metrics::{Gauge, Stability};
use kcm_framework::{BoxError, ControllerContext, Loops, error_chain};
use parking_lot::Mutex;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::file_failure::FileFailure;

/// The section of the settings of service accounts.
pub(crate) const SECTION: Section = Section::new("Serviceaccount-controller", "SAController");

pub(crate) const ROOT_CA_FILE: Setting<String> = SECTION.string("root-ca-file", "RootCAFile", "").help(
    "PEM bundle for token Secrets and for the ConfigMap kube-root-ca.crt of each namespace. A changed file is published \
     within seconds. Empty: the CA in the kubeconfig.",
);

/// Interval at which the file is read.
const RELOAD: Duration = Duration::from_secs(5);

/// A `--root-ca-file` that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RootCaError {
    #[error("cannot read --root-ca-file {path:?}: check its path and permissions")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("--root-ca-file {path:?} has no certificate in PEM: give the bundle of authorities of the API server")]
    NoCertificate { path: PathBuf },
}

/// The root CA in PEM: the content of `--root-ca-file`, or else the CA that the kubeconfig of the manager holds.
///
/// # Guarantees
/// - A file that cannot be used any more leaves the previous content. The error is logged at once, when it changes and every
///   ten minutes, and a gauge has the time since which it lasts.
/// - A file with equal content is no change.
///
/// # Upstream
/// `getKubeAPIServerCAFileContents` in `cmd/kube-controller-manager/app/certificates.go`, which reads the file once.
pub(crate) struct RootCaSource {
    path: Option<PathBuf>,
    state: Mutex<State>,
    failing_since: Gauge,
}

struct State {
    current: Arc<str>,
    failure: Option<FileFailure>,
}

impl RootCaSource {
    /// Reads the root CA. It is empty if there is neither a file nor a CA in the kubeconfig; a file that the kubeconfig
    /// only names does not count.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub(crate) fn read(context: &ControllerContext) -> Result<Arc<Self>, BoxError> {
        let path = context.get(&ROOT_CA_FILE)?;
        let path = (!path.is_empty()).then(|| PathBuf::from(path));
        let current = match &path {
            Some(path) => read(path)?,
            None => {
                context.extension::<ClientAuthority>().map_or_else(|| "".into(), |authority| authority.pem().into())
            }
        };
        let failing_since = context.metrics().gauges(
            Stability::Alpha,
            "controller_root_ca_file_failing_since_seconds",
            ["controller"],
            "Time since which --root-ca-file cannot be used, in seconds since 1970; 0 if it can",
        )?;
        let failing_since = failing_since.of([context.controller()]);
        Ok(Arc::new(Self { path, state: Mutex::new(State { current, failure: None }), failing_since }))
    }

    /// Returns the content that was valid last.
    pub(crate) fn current(&self) -> Arc<str> {
        Arc::clone(&self.state.lock().current)
    }

    /// Adds a loop that reads the file every five seconds, and calls `changed` after its content has changed.
    pub(crate) fn follow(
        self: &Arc<Self>,
        loops: Loops,
        name: &'static str,
        context: &ControllerContext,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Loops {
        let Some(path) = self.path.clone() else { return loops };
        let (source, clock) = (Arc::clone(self), Arc::clone(context.clock()));
        loops.periodic(name, RELOAD, move || {
            if source.reload(&path, clock.now()) {
                changed();
            }
            async { Ok(()) }.boxed()
        })
    }

    /// Reads the file, and returns `true` if it has another content that can be used.
    fn reload(&self, path: &Path, now: Timestamp) -> bool {
        let mut state = self.state.lock();
        match read(path) {
            Ok(read) => {
                state.failure = None;
                self.failing_since.set(0);
                let is_changed = state.current != read;
                if is_changed {
                    tracing::info!(file = ?path, "Loaded the changed root CA");
                    state.current = read;
                }
                is_changed
            }
            Err(error) => {
                let (failure, is_logged) = FileFailure::follow(state.failure.take(), error_chain(&error), now);
                if is_logged {
                    tracing::error!(error = failure.text(), "Cannot load the root CA; publishing the previous one");
                }
                self.failing_since.set(failure.since().as_second());
                state.failure = Some(failure);
                false
            }
        }
    }
}

fn read(path: &Path) -> Result<Arc<str>, RootCaError> {
    let pem = std::fs::read(path).map_err(|source| RootCaError::Unreadable { path: path.to_owned(), source })?;
    if !CertificateDer::pem_slice_iter(&pem).any(|certificate| certificate.is_ok()) {
        return Err(RootCaError::NoCertificate { path: path.to_owned() });
    }
    Ok(String::from_utf8_lossy(&pem).into())
}
