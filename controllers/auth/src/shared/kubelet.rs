//! Rules for the certificates of kubelets.
//!
//! # Upstream
//! `pkg/apis/certificates/helpers.go`

use super::x509::CertificateRequest;

const NODES: &str = "system:nodes";
const NODE_PREFIX: &str = "system:node:";

const DIGITAL_SIGNATURE: &str = "digital signature";
const KEY_ENCIPHERMENT: &str = "key encipherment";

/// A rule that a request violates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    /// The organisation is not exactly `system:nodes`.
    #[error("subject organization is not system:nodes")]
    Organization,
    /// The common name does not name a node.
    #[error("subject common name does not begin with system:node:")]
    CommonName,
    /// There is a DNS name.
    #[error("DNS subjectAltNames are not allowed")]
    Dns,
    /// There is an e-mail address.
    #[error("Email subjectAltNames are not allowed")]
    Email,
    /// There is an IP address.
    #[error("IP subjectAltNames are not allowed")]
    Ip,
    /// There is a URI.
    #[error("URI subjectAltNames are not allowed")]
    Uri,
    /// There is neither a DNS name nor an IP address.
    #[error("DNS or IP subjectAltName is required")]
    NoName,
    /// The usages do not suit a client.
    #[error("usages did not match [client auth digital signature key encipherment]")]
    ClientUsages,
    /// The usages do not suit a server.
    #[error("usages did not match [digital signature key encipherment server auth]")]
    ServerUsages,
    /// A usage that clients of the API server must not have.
    #[error("invalid usage for client certificate: {0}")]
    NotAClientUsage(String),
    /// The usage that clients of the API server must have is missing.
    #[error("missing required usage for client certificate: client auth")]
    NoClientAuth,
}

/// Checks a request for the client certificate of a kubelet; the first violation counts.
///
/// # Errors
/// The rule that the request violates.
pub(crate) fn validate_client(request: &CertificateRequest, usages: &[impl AsRef<str>]) -> Result<(), Violation> {
    check(request.subject.organization == [NODES], Violation::Organization)?;
    check(request.dns_names.is_empty(), Violation::Dns)?;
    check(request.email_addresses.is_empty(), Violation::Email)?;
    check(request.ip_addresses.is_empty(), Violation::Ip)?;
    check(request.uris.is_empty(), Violation::Uri)?;
    check(request.subject.common_name.starts_with(NODE_PREFIX), Violation::CommonName)?;
    check(has_usages(usages, "client auth"), Violation::ClientUsages)
}

/// Checks a request for the serving certificate of a kubelet; the first violation counts.
///
/// # Errors
/// The rule that the request violates.
pub(crate) fn validate_serving(request: &CertificateRequest, usages: &[impl AsRef<str>]) -> Result<(), Violation> {
    check(request.subject.organization == [NODES], Violation::Organization)?;
    check(!request.dns_names.is_empty() || !request.ip_addresses.is_empty(), Violation::NoName)?;
    check(request.email_addresses.is_empty(), Violation::Email)?;
    check(request.uris.is_empty(), Violation::Uri)?;
    check(has_usages(usages, "server auth"), Violation::ServerUsages)?;
    check(request.subject.common_name.starts_with(NODE_PREFIX), Violation::CommonName)
}

/// Checks the usages of a client of the API server.
///
/// # Errors
/// The rule that the usages violate.
pub(crate) fn validate_api_client(usages: &[impl AsRef<str>]) -> Result<(), Violation> {
    let mut has_client_auth = false;
    for usage in usages.iter().map(AsRef::as_ref) {
        match usage {
            DIGITAL_SIGNATURE | KEY_ENCIPHERMENT => {}
            "client auth" => has_client_auth = true,
            other => return Err(Violation::NotAClientUsage(other.to_owned())),
        }
    }
    check(has_client_auth, Violation::NoClientAuth)
}

fn check(holds: bool, violation: Violation) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(violation) }
}

/// Returns `true` if the set of usages is the signature and `purpose`, or these and the encipherment of keys.
fn has_usages(usages: &[impl AsRef<str>], purpose: &str) -> bool {
    let has = |wanted: &str| usages.iter().any(|usage| usage.as_ref() == wanted);
    let is_known = |usage: &str| [DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, purpose].contains(&usage);
    has(DIGITAL_SIGNATURE) && has(purpose) && usages.iter().all(|usage| is_known(usage.as_ref()))
}
