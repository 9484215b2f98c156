//! The wait for the API server at start, and the reasons why it cannot be used.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError, Error as TlsError};
use tokio::time::Instant;

use super::api_client::ApiClient;
use super::request::{ApiError, Cause, chain};
use super::transport::ProxyError;
use crate::error::error_chain;

/// The reason why the API server cannot be used. Each message says what failed and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreachable {
    /// The connection is refused.
    #[error("nothing listens at the API server's address {server}: check that it runs, and `server` in the kubeconfig")]
    Refused {
        /// URL of the API server.
        server: String,
    },
    /// The name of the server cannot be resolved.
    #[error("the name of the API server {server} cannot be resolved: check `server` in the kubeconfig, and DNS")]
    UnknownHost {
        /// URL of the API server.
        server: String,
    },
    /// The server does not respond.
    #[error("the API server {server} does not answer: check its address, its load, and firewalls on the way")]
    Silent {
        /// URL of the API server.
        server: String,
    },
    /// The proxy makes no connection to the server.
    #[error("the API server {server} cannot be reached through a proxy: {reason}")]
    Proxy {
        /// URL of the API server.
        server: String,
        /// The proxy, and why.
        reason: String,
    },
    /// The certificate of the server is not accepted.
    #[error("the certificate of the API server {server} {fault}")]
    Certificate {
        /// URL of the API server.
        server: String,
        /// The fault and its remedy.
        fault: CertificateFault,
    },
    /// The server refuses the client certificate in the TLS handshake.
    #[error("the API server {server} refuses our client certificate: renew `client-certificate` in the kubeconfig")]
    ClientCertificate {
        /// URL of the API server.
        server: String,
    },
    /// The server does not speak TLS.
    #[error("what listens at {server} does not speak TLS: check scheme and port of `server` in the kubeconfig")]
    NotTls {
        /// URL of the API server.
        server: String,
    },
    /// The credentials are not accepted (401).
    #[error("the API server {server} does not know our credentials (401): renew the user's in the kubeconfig")]
    Unauthorized {
        /// URL of the API server.
        server: String,
    },
    /// The health check is forbidden (403).
    #[error(
        "the API server {server} forbids `get /healthz` (403: {message}): bind the user to the role system:kube-controller-manager"
    )]
    Forbidden {
        /// URL of the API server.
        server: String,
        /// The message of the server.
        message: String,
    },
    /// The server responds that it is not healthy.
    #[error("the API server {server} is not healthy ({code}: {message}): look at its log")]
    Unhealthy {
        /// URL of the API server.
        server: String,
        /// The HTTP status code.
        code: u16,
        /// The message of the server.
        message: String,
    },
    /// It cannot be used for another reason.
    #[error("the API server {server} cannot be used: {reason}")]
    Other {
        /// URL of the API server.
        server: String,
        /// The error with its causes.
        reason: String,
    },
}

/// The fault of a server certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateFault {
    /// Not signed by a trusted authority.
    #[error(
        "is not signed by a trusted authority: put the cluster's CA into `certificate-authority-data` of the kubeconfig"
    )]
    UnknownIssuer,
    /// Not valid for the name of the server.
    #[error("is not valid for that name{}: use a name that it has in `server`, or set `tls-server-name`", names(.valid_for))]
    OtherName {
        /// The names that it is valid for.
        valid_for: Vec<String>,
    },
    /// Its validity has ended.
    #[error("has expired: renew it (kubeadm certs renew apiserver), or correct the clock of this machine")]
    Expired,
    /// Its validity has not begun.
    #[error("is not valid yet: correct the clock of this machine, or of the one that made the certificate")]
    NotYetValid,
    /// It cannot be trusted for another reason.
    #[error("cannot be trusted ({0}): renew it")]
    Other(String),
}

fn names(valid_for: &[String]) -> String {
    if valid_for.is_empty() { String::new() } else { format!(" (only for {})", valid_for.join(", ")) }
}

impl Unreachable {
    /// Returns `true` if waiting may help; a certificate that is not accepted does not change.
    const fn may_pass(&self) -> bool {
        !matches!(self, Self::Certificate { .. } | Self::ClientCertificate { .. } | Self::NotTls { .. })
    }
}

/// Requests `/healthz` once a second until the API server is healthy, for at most `patience`.
///
/// # Errors
/// The reason of the last failure; at once if waiting cannot help.
///
/// # Upstream
/// `WaitForAPIServer`, with a patience of 10 s.
pub async fn wait_for_api_server(client: &ApiClient, server: &str, patience: Duration) -> Result<(), Unreachable> {
    const PERIOD: Duration = Duration::from_secs(1);
    let end = Instant::now() + patience;
    let mut last = Unreachable::Silent { server: server.to_owned() };
    loop {
        match tokio::time::timeout_at(end, client.get_path("/healthz", "*/*")).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => last = explain(server, &error),
            Err(_) => return Err(last),
        }
        if !last.may_pass() || Instant::now() + PERIOD > end {
            return Err(last);
        }
        tracing::debug!(reason = %last, "Waiting for the API server");
        tokio::time::sleep(PERIOD).await;
    }
}

fn explain(server: &str, error: &ApiError) -> Unreachable {
    let server = server.to_owned();
    let source: &(dyn StdError + 'static) = match error.cause() {
        Cause::Status(status) => {
            let message = status.to_string();
            return match status.code {
                401 => Unreachable::Unauthorized { server },
                403 => Unreachable::Forbidden { server, message },
                code => Unreachable::Unhealthy { server, code, message },
            };
        }
        Cause::Fenced(_) | Cause::Undeclared { .. } | Cause::TooLarge { .. } | Cause::GivenUp(_) => {
            return Unreachable::Other { server, reason: error.message() };
        }
        Cause::Timeout(_) => return Unreachable::Silent { server },
        Cause::NotSent(source) | Cause::Transport(source) => source.as_ref(),
        Cause::Decode(source) | Cause::Encode(source) => source,
    };
    if let Some(proxy) = chain(source).find_map(|error| error.downcast_ref::<ProxyError>()) {
        return Unreachable::Proxy { server, reason: error_chain(proxy) };
    }
    if let Some(tls) = chain(source).find_map(|error| error.downcast_ref::<TlsError>()) {
        return explain_tls(server, tls);
    }
    let mut kinds = chain(source).filter_map(|error| error.downcast_ref().map(std::io::Error::kind));
    match kinds.find(|&kind| kind != ErrorKind::Other) {
        Some(ErrorKind::ConnectionRefused) => Unreachable::Refused { server },
        Some(ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => {
            Unreachable::Silent { server }
        }
        // Hyper has no error type for it.
        _ if chain(source).any(|error| error.to_string() == "dns error") => Unreachable::UnknownHost { server },
        _ => Unreachable::Other { server, reason: error.message() },
    }
}

fn explain_tls(server: String, error: &TlsError) -> Unreachable {
    use AlertDescription as Alert;
    if let TlsError::InvalidCertificate(fault) = error {
        return Unreachable::Certificate { server, fault: certificate_fault(fault) };
    }
    if matches!(error, TlsError::InvalidMessage(_)) {
        return Unreachable::NotTls { server };
    }
    if let TlsError::AlertReceived(alert) = error
        && [
            Alert::BadCertificate,
            Alert::UnknownCA,
            Alert::CertificateRequired,
            Alert::CertificateExpired,
            Alert::CertificateUnknown,
            Alert::AccessDenied,
        ]
        .contains(alert)
    {
        return Unreachable::ClientCertificate { server };
    }
    Unreachable::Other { server, reason: error.to_string() }
}

fn certificate_fault(error: &CertificateError) -> CertificateFault {
    // Every kubeadm cluster names its CA `kubernetes`: the CA of another cluster has the same name and another key.
    if matches!(error, CertificateError::UnknownIssuer | CertificateError::BadSignature) {
        return CertificateFault::UnknownIssuer;
    }
    if let CertificateError::NotValidForNameContext { presented, .. } = error {
        return CertificateFault::OtherName { valid_for: presented.iter().map(|name| plain_name(name)).collect() };
    }
    if matches!(error, CertificateError::NotValidForName) {
        return CertificateFault::OtherName { valid_for: Vec::new() };
    }
    if matches!(error, CertificateError::Expired | CertificateError::ExpiredContext { .. }) {
        return CertificateFault::Expired;
    }
    if matches!(error, CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }) {
        return CertificateFault::NotYetValid;
    }
    CertificateFault::Other(error.to_string())
}

/// The name within `DnsName("a")` or `IpAddress(10.0.0.1)`, as webpki writes names.
fn plain_name(presented: &str) -> String {
    let inner = presented.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(presented);
    inner.trim_matches('"').to_owned()
}
