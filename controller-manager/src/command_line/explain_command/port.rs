//! The HTTPS port of the manager, as the sub-command reaches it.

use std::error::Error;
use std::fs;

use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kcm_config::Effective;
use kcm_framework::client::{connect, load_config};
use kube::client::Body;
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::ExplainError;

/// The manager's HTTPS port, and the way to reach it.
pub(super) struct Port {
    pub(super) server: String,
    kubeconfig: Option<String>,
    token: String,
    certificate_authority: String,
    skips_verification: bool,
}

impl Port {
    pub(super) fn of(settings: &Effective) -> Self {
        let text = |flag: &str| settings.get::<String>(flag).unwrap_or_default();
        let kubeconfig = text("kubeconfig");
        Self {
            server: text("server"),
            kubeconfig: (!kubeconfig.is_empty()).then_some(kubeconfig),
            token: text("token"),
            certificate_authority: text("certificate-authority"),
            skips_verification: settings.get("insecure-skip-tls-verify").unwrap_or(false),
        }
    }

    pub(super) async fn client(&self) -> Result<kube::Client, ExplainError> {
        let url: http::Uri = self.server.parse().map_err(|_| ExplainError::Server(self.server.clone()))?;
        let mut config = match &self.kubeconfig {
            Some(file) => load_config(Some(file.as_ref()), Some(url)).await.map_err(ExplainError::Credentials)?,
            None => kube::Config::new(url),
        };
        config.accept_invalid_certs = self.skips_verification;
        if !self.token.is_empty() {
            config.auth_info =
                kube::config::AuthInfo { token: Some(SecretString::from(self.token.clone())), ..Default::default() };
        }
        if !self.certificate_authority.is_empty() {
            let file = self.certificate_authority.clone();
            let pem = fs::read(&file).map_err(|source| ExplainError::Authority { file: file.clone(), source })?;
            config.root_cert = Some(certificates(&pem).ok_or(ExplainError::Pem(file))?);
        }
        connect(&config).map_err(|source| ExplainError::Client { server: self.server.clone(), source })
    }

    fn unreachable(&self, error: kube::Error) -> ExplainError {
        let server = self.server.clone();
        // The text of kube's error repeats its source.
        let source = if let kube::Error::Service(source) = error { source } else { error.into() };
        if is_of_certificate(source.as_ref()) {
            ExplainError::Certificate { server, source }
        } else {
            ExplainError::Unreachable { server, source }
        }
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, client: &kube::Client, path: &str) -> Result<T, ExplainError> {
        let (path, server) = (path.to_owned(), self.server.clone());
        let request = Request::get(&path).body(Body::empty()).map_err(|_| ExplainError::Server(server.clone()))?;
        let response = client.send(request).await.map_err(|error| self.unreachable(error))?;
        let code = response.status();
        let body = response.into_body().collect().await.map_err(|error| self.unreachable(error))?.to_bytes();
        let message = || message_of(&body);
        match code {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => return Err(ExplainError::Unauthorized { server }),
            StatusCode::FORBIDDEN => return Err(ExplainError::Forbidden { path, server, message: message() }),
            code => return Err(ExplainError::Refused { path, server, code: code.as_u16(), message: message() }),
        }
        serde_json::from_slice(&body).map_err(|source| ExplainError::Response { path, server, source })
    }
}

/// The message of a `Status`, or the text that was returned instead.
fn message_of(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Status {
        message: String,
    }
    let status = serde_json::from_slice::<Status>(body);
    status.map_or_else(|_| String::from_utf8_lossy(body).trim().to_owned(), |status| status.message)
}

/// Returns `true` if a connection failed because the certificate of the server is not trusted.
fn is_of_certificate(error: &(dyn Error + 'static)) -> bool {
    // An I/O error does not return the wrapped error as its source.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    matches!(error.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
        || wrapped.is_some_and(|wrapped| is_of_certificate(wrapped))
        || error.source().is_some_and(is_of_certificate)
}

/// The certificates of a PEM file.
fn certificates(pem: &[u8]) -> Option<Vec<Vec<u8>>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all: Vec<Vec<u8>> = all.ok()?.iter().map(|certificate| certificate.to_vec()).collect();
    (!all.is_empty()).then_some(all)
}
