//! The certificates of a connection, and the files that they are read from.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::client::ConfigExt;
use kube::config::AuthInfo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use secrecy::{ExposeSecret, SecretString};

use super::authorization::ClientCertificate;

/// The sources of the certificates of a kubeconfig.
#[derive(Clone)]
pub(super) struct TlsFiles {
    config: kube::Config,
}

/// Certificates as they are at a time.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct TlsMaterial {
    /// The trusted certificates, in DER. `None` trusts the certificates of the system.
    roots: Option<Vec<Vec<u8>>>,
    certificate: Option<ClientCertificate>,
}

/// A file of certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsFileError {
    #[error("the file {path:?} of `{field}` cannot be read: check its path and its permissions")]
    Unreadable {
        field: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the file {path:?} of `certificate-authority` has no certificate")]
    NoCertificate { path: PathBuf },
}

impl TlsFiles {
    pub(super) fn of(config: &kube::Config) -> Self {
        Self { config: config.clone() }
    }

    /// Returns `true` if there are no files: the certificates then never change.
    pub(super) fn is_empty(&self) -> bool {
        let user = &self.config.auth_info;
        self.config.root_cert_file.is_none() && user.client_certificate.is_none() && user.client_key.is_none()
    }

    pub(super) fn read(&self) -> Result<TlsMaterial, TlsFileError> {
        let roots = match &self.config.root_cert_file {
            Some(path) => Some(roots(path)?),
            None => self.config.root_cert.clone(),
        };
        Ok(TlsMaterial { roots, certificate: certificate(&self.config.auth_info)? })
    }

    /// The TLS configuration with `material`.
    pub(super) fn client_config(&self, material: &TlsMaterial) -> kube::Result<rustls::ClientConfig> {
        let mut config = self.config.clone();
        config.root_cert.clone_from(&material.roots);
        config.root_cert_file = None;
        config.auth_info = AuthInfo::default();
        if let Some(ClientCertificate { certificate, key }) = &material.certificate {
            config.auth_info.client_certificate_data = Some(certificate.clone());
            config.auth_info.client_key_data = Some(SecretString::from(key.clone()));
        }
        config.rustls_client_config()
    }
}

impl TlsMaterial {
    /// The same with another client certificate.
    pub(super) fn with_certificate(&self, certificate: &ClientCertificate) -> Self {
        Self { certificate: Some(certificate.clone()), ..self.clone() }
    }

    /// Returns `true` if `certificate` is its client certificate.
    pub(super) fn has_certificate(&self, certificate: &ClientCertificate) -> bool {
        self.certificate.as_ref() == Some(certificate)
    }

    /// Returns `false` if `other` only adds the first client certificate, which an exec plugin has returned.
    pub(super) fn is_replaced_by(&self, other: &Self) -> bool {
        self.certificate.is_some() || self.roots != other.roots
    }

    /// The same with the trusted certificates of `other`.
    pub(super) fn with_roots_of(&self, other: &Self) -> Self {
        Self { roots: other.roots.clone(), ..self.clone() }
    }
}

fn roots(path: &Path) -> Result<Vec<Vec<u8>>, TlsFileError> {
    let pem = read("certificate-authority", path)?;
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(&pem).map(|found| found.map(|der| der.to_vec())).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) | Err(_) => Err(TlsFileError::NoCertificate { path: path.to_owned() }),
    }
}

/// The client certificate of a user. Data of the kubeconfig comes before files, as upstream.
fn certificate(user: &AuthInfo) -> Result<Option<ClientCertificate>, TlsFileError> {
    let part = |field, data: Option<&str>, path: Option<&String>| match (data, path) {
        (Some(data), _) => Ok(data.to_owned()),
        (None, Some(path)) => read(field, Path::new(path)).map(|pem| STANDARD.encode(pem)),
        (None, None) => Ok(String::new()),
    };
    let certificate_data = user.client_certificate_data.as_deref();
    let key_data = user.client_key_data.as_ref().map(ExposeSecret::expose_secret);
    let certificate = part("client-certificate", certificate_data, user.client_certificate.as_ref())?;
    let key = part("client-key", key_data, user.client_key.as_ref())?;
    // One without the other is refused when the TLS configuration is made.
    let is_absent = certificate.is_empty() && key.is_empty();
    Ok((!is_absent).then_some(ClientCertificate { certificate, key }))
}

fn read(field: &'static str, path: &Path) -> Result<Vec<u8>, TlsFileError> {
    std::fs::read(path).map_err(|source| TlsFileError::Unreadable { field, path: path.to_owned(), source })
}
