//! The credentials of requests: the header `Authorization`, and the client certificate that an exec plugin returns.
//!
//! # Upstream
//! client-go: a client certificate, a token or a password in the kubeconfig overrides its exec plugin, and the token of
//! a file overrides the token beside it.

mod exec;
mod exec_metrics;
mod token_file;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use kube::config::AuthInfo;
use secrecy::ExposeSecret;

use self::exec::ExecPlugin;
pub use self::exec_metrics::ExecPluginMetrics;
use self::token_file::TokenFile;
use crate::client_provider::CredentialsError;
use crate::clock::Clock;

/// The credentials of a user of a kubeconfig, as they change.
pub(super) enum Credentials {
    /// None, or a client certificate alone.
    None,
    /// Credentials that never change.
    Fixed(HeaderValue),
    /// The token of a file.
    File(TokenFile),
    /// Credentials that a program returns.
    Exec(Box<ExecPlugin>),
}

/// The credentials of a request.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Current {
    pub(super) header: Option<HeaderValue>,
    /// The client certificate of an exec plugin.
    pub(super) certificate: Option<Arc<ClientCertificate>>,
}

/// A client certificate and its key, each PEM in base64, as a kubeconfig has them.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ClientCertificate {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Credentials of a kubeconfig that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum CredentialsFault {
    #[error("the token holds a line break or another control character")]
    Token,
    #[error("there are both a password and a token: remove one")]
    Ambiguous,
    #[error("`auth-provider` {0} is not supported: use a token, a client certificate, or an exec plugin")]
    AuthProvider(String),
    #[error(transparent)]
    TokenFile(#[from] token_file::TokenFileError),
    #[error(transparent)]
    Exec(#[from] exec::ExecConfigError),
}

impl Credentials {
    /// The credentials of a user. A token file is read; an exec plugin runs when a request needs it.
    pub(super) fn of(
        user: &AuthInfo,
        clock: Arc<dyn Clock>,
        plugins: &ExecPluginMetrics,
    ) -> Result<Self, CredentialsFault> {
        if let Some(provider) = &user.auth_provider {
            return Err(CredentialsFault::AuthProvider(provider.name.clone()));
        }
        let token = user.token.as_ref().map(|token| bearer(token.expose_secret()));
        let token = token.transpose()?;
        let file = user.token_file.as_ref().filter(|file| !file.is_empty());
        let password = user.username.as_ref().filter(|name| !name.is_empty()).zip(user.password.as_ref());
        match (password, file, token) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => Err(CredentialsFault::Ambiguous),
            (Some((name, password)), None, None) => {
                let credentials = STANDARD.encode(format!("{name}:{}", password.expose_secret()));
                Ok(Self::Fixed(header(&format!("Basic {credentials}"))?))
            }
            (None, Some(file), token) => Ok(Self::File(TokenFile::open(file.into(), token)?)),
            (None, None, Some(token)) => Ok(Self::Fixed(token)),
            (None, None, None) => match &user.exec {
                Some(exec) if !has_certificate(user) => {
                    Ok(Self::Exec(Box::new(ExecPlugin::new(exec, clock, plugins)?)))
                }
                Some(_) | None => Ok(Self::None),
            },
        }
    }

    /// The credentials for a request that is sent now.
    ///
    /// # Errors
    /// If an exec plugin returns no credentials.
    pub(super) async fn current(&self) -> Result<Current, CredentialsError> {
        match self {
            Self::None => Ok(Current { header: None, certificate: None }),
            Self::Fixed(header) => Ok(Current { header: Some(header.clone()), certificate: None }),
            Self::File(file) => Ok(Current { header: Some(file.current().await), certificate: None }),
            Self::Exec(plugin) => plugin.current().await.map_err(CredentialsError::new),
        }
    }

    /// Gets other credentials for the next request, unless there are others already: the response to these was 401.
    pub(super) fn refused(&self, used: &Current) {
        match self {
            Self::None | Self::Fixed(_) => {}
            Self::File(file) => file.refused(),
            Self::Exec(plugin) => plugin.refused(used),
        }
    }
}

/// Returns `true` if a kubeconfig has a client certificate.
fn has_certificate(user: &AuthInfo) -> bool {
    user.client_certificate.is_some() || user.client_certificate_data.is_some()
}

fn bearer(token: &str) -> Result<HeaderValue, CredentialsFault> {
    header(&format!("Bearer {token}"))
}

fn header(value: &str) -> Result<HeaderValue, CredentialsFault> {
    let mut header = HeaderValue::try_from(value).map_err(|_| CredentialsFault::Token)?;
    header.set_sensitive(true);
    Ok(header)
}
