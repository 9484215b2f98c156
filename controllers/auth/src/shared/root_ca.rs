//! The root CA that is published in every namespace and in tokens.

use std::path::PathBuf;

use kcm_framework::client::ClientAuthority;
use kcm_framework::config::{Section, Setting};
use kcm_framework::{BoxError, ControllerContext};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// The section of the settings of service accounts.
pub(crate) const SECTION: Section = Section::new("Serviceaccount-controller", "SAController");

pub(crate) const ROOT_CA_FILE: Setting<String> = SECTION.string("root-ca-file", "RootCAFile", "").help(
    "PEM bundle for token Secrets and for the ConfigMap kube-root-ca.crt of each namespace. Empty: the CA in the kubeconfig.",
);

/// A `--root-ca-file` that cannot be used.
#[derive(Debug, thiserror::Error)]
enum RootCaError {
    #[error("cannot read --root-ca-file {path:?}: check its path and permissions")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("--root-ca-file {path:?} has no certificate in PEM: give the bundle of authorities of the API server")]
    NoCertificate { path: PathBuf },
}

/// Returns the root CA in PEM: the content of `--root-ca-file`, or else the CA that the kubeconfig of the manager holds.
///
/// It is empty if there is neither. A file that the kubeconfig only names does not count.
///
/// # Upstream
/// `getKubeAPIServerCAFileContents` in `cmd/kube-controller-manager/app/certificates.go`.
pub(crate) fn root_ca(context: &ControllerContext) -> Result<String, BoxError> {
    let path = context.get(&ROOT_CA_FILE)?;
    if path.is_empty() {
        let authority = context.extension::<ClientAuthority>();
        return Ok(authority.map(|authority| authority.pem().to_owned()).unwrap_or_default());
    }
    let path = PathBuf::from(path);
    let pem = std::fs::read(&path).map_err(|source| RootCaError::Unreadable { path: path.clone(), source })?;
    if !CertificateDer::pem_slice_iter(&pem).any(|certificate| certificate.is_ok()) {
        return Err(RootCaError::NoCertificate { path }.into());
    }
    Ok(String::from_utf8_lossy(&pem).into_owned())
}
