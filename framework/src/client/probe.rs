//! Waiting for the API server, and saying why it cannot be used.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError, Error as TlsError};
use tokio::time::Instant;

use super::api_client::ApiClient;
use super::request::{ApiError, Cause, chain};

/// Why the API server cannot be used; each is a sentence that says what was tried and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreachable {
    /// Nothing listens at that address.
    #[error("nothing listens at the API server's address {server}: check that it runs, and `server` in the kubeconfig")]
    Refused {
        /// The API server.
        server: String,
    },
    /// The name of the server is not known.
    #[error("the name of the API server {server} cannot be resolved: check `server` in the kubeconfig, and DNS")]
    UnknownHost {
        /// The API server.
        server: String,
    },
    /// Nothing came back.
    #[error("the API server {server} does not answer: check its address, its load, and firewalls on the way")]
    Silent {
        /// The API server.
        server: String,
    },
    /// The server's certificate does not fit.
    #[error("the certificate of the API server {server} {fault}")]
    Certificate {
        /// The API server.
        server: String,
        /// What is wrong with it, and what to do.
        fault: CertificateFault,
    },
    /// The server refuses our certificate already while connecting.
    #[error("the API server {server} refuses our client certificate: renew `client-certificate` in the kubeconfig")]
    ClientCertificate {
        /// The API server.
        server: String,
    },
    /// Whatever listens there does not speak TLS.
    #[error("what listens at {server} does not speak TLS: check scheme and port of `server` in the kubeconfig")]
    NotTls {
        /// The API server.
        server: String,
    },
    /// Our credentials are not known (401).
    #[error("the API server {server} does not know our credentials (401): renew the user's in the kubeconfig")]
    Unauthorized {
        /// The API server.
        server: String,
    },
    /// We may not ask for its health (403).
    #[error(
        "the API server {server} forbids `get /healthz` (403: {message}): bind the user to the role system:kube-controller-manager"
    )]
    Forbidden {
        /// The API server.
        server: String,
        /// What the server says.
        message: String,
    },
    /// It answers, but not that it is healthy.
    #[error("the API server {server} is not healthy ({code}: {message}): look at its log")]
    Unhealthy {
        /// The API server.
        server: String,
        /// The HTTP status code.
        code: u16,
        /// What the server says.
        message: String,
    },
    /// Anything else.
    #[error("the API server {server} cannot be used: {reason}")]
    Other {
        /// The API server.
        server: String,
        /// Why.
        reason: String,
    },
}

/// What is wrong with the certificate of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateFault {
    /// Signed by nobody whom we trust.
    #[error(
        "is not signed by a trusted authority: put the cluster's CA into `certificate-authority-data` of the kubeconfig"
    )]
    UnknownIssuer,
    /// For another name.
    #[error("is not valid for that name{}: use a name that it has in `server`, or set `tls-server-name`", names(.valid_for))]
    OtherName {
        /// The names that it is valid for.
        valid_for: Vec<String>,
    },
    /// Too old.
    #[error("has expired: renew it (kubeadm certs renew apiserver), or correct the clock of this machine")]
    Expired,
    /// Too young.
    #[error("is not valid yet: correct the clock of this machine, or of the one that made the certificate")]
    NotYetValid,
    /// Anything else.
    #[error("cannot be trusted ({0}): renew it")]
    Other(String),
}

fn names(valid_for: &[String]) -> String {
    if valid_for.is_empty() { String::new() } else { format!(" (only for {})", valid_for.join(", ")) }
}

impl Unreachable {
    /// Whether waiting may help; a certificate that does not fit stays as it is.
    const fn may_pass(&self) -> bool {
        !matches!(self, Self::Certificate { .. } | Self::ClientCertificate { .. } | Self::NotTls { .. })
    }
}

/// Asks `/healthz` once a second until the API server says that it is healthy, for at most `patience`.
///
/// # Errors
/// Why it could not be used when last asked; at once where waiting cannot help.
///
/// # Upstream
/// `WaitForAPIServer`, with a patience of 10 s.
pub async fn wait_for_api_server(client: &ApiClient, server: &str, patience: Duration) -> Result<(), Unreachable> {
    const EVERY: Duration = Duration::from_secs(1);
    let end = Instant::now() + patience;
    let mut last = Unreachable::Silent { server: server.to_owned() };
    loop {
        match tokio::time::timeout_at(end, client.get_path("/healthz", "*/*")).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => last = explain(server, &error),
            Err(_) => return Err(last),
        }
        if !last.may_pass() || Instant::now() + EVERY > end {
            return Err(last);
        }
        tracing::debug!(reason = %last, "Waiting for the API server");
        tokio::time::sleep(EVERY).await;
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
        Cause::Timeout(_) => return Unreachable::Silent { server },
        Cause::NotSent(source) | Cause::Transport(source) => source.as_ref(),
        Cause::Decode(source) | Cause::Encode(source) => source,
    };
    if let Some(tls) = chain(source).find_map(|error| error.downcast_ref::<TlsError>()) {
        return explain_tls(server, tls);
    }
    let mut kinds = chain(source).filter_map(|error| error.downcast_ref().map(std::io::Error::kind));
    match kinds.find(|&kind| kind != ErrorKind::Other) {
        Some(ErrorKind::ConnectionRefused) => Unreachable::Refused { server },
        Some(ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => {
            Unreachable::Silent { server }
        }
        // Hyper has no type for it.
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
    // Every kubeadm cluster calls its CA `kubernetes`: that of another cluster has the name, and not the key.
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
