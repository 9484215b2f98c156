//! The root CA that is published in every namespace and in tokens.

use std::path::PathBuf;

use kcm_config::{Initial, Row};
use kcm_framework::client::ClientAuthority;
use kcm_framework::{BoxError, ControllerContext};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// The row of `--root-ca-file`.
pub(crate) const ROOT_CA_ROW: Row = Row::new("root-ca-file", "Serviceaccount-controller", Initial::String(""))
    .path("SAController.RootCAFile")
    .help("A bundle of authorities, in PEM, that the tokens of service accounts carry and that is published in every namespace.");

/// A `--root-ca-file` that cannot be used.
#[derive(Debug, thiserror::Error)]
enum RootCaError {
    /// The file cannot be read.
    #[error("cannot read --root-ca-file {path:?}: check its path and permissions")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file has no certificate.
    #[error("--root-ca-file {path:?} has no certificate in PEM: give the bundle of authorities of the API server")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
}

/// The root CA in PEM: the content of `--root-ca-file`, or else the CA that the kubeconfig of the manager holds.
///
/// Empty where neither is there. A file that the kubeconfig only names does not count.
///
/// # Upstream
/// `getKubeAPIServerCAFileContents` in `cmd/kube-controller-manager/app/certificates.go`.
pub(crate) fn root_ca(context: &ControllerContext) -> Result<String, BoxError> {
    let path: String = context.setting(ROOT_CA_ROW.name)?;
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
