//! Certificates: the signed part, and the certificate itself.
//!
//! # Upstream
//! `CreateCertificate` of Go's `crypto/x509`, `pkg/controller/certificates/authority`.

use std::net::IpAddr;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::der;
use super::public_key::VerifyError;
use super::request::{self, CertificateRequest};
use super::usages::{UnknownUsages, Usages};

/// A certificate is valid from this time before it is signed.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// A certificate with a shorter lifetime ends without backdating.
const SHORT: SignedDuration = SignedDuration::from_hours(8);

/// Octets of a serial number.
pub(super) const SERIAL: usize = 16;

const OID_KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const OID_BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const OID_AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 35];
const OID_EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
const CRITICAL: &[u8] = &[der::BOOLEAN, 1, 0xff];

/// A request that is not signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignError {
    /// The signature of the request.
    #[error(transparent)]
    Request(#[from] VerifyError),
    /// The usages of the request.
    #[error(transparent)]
    Usages(#[from] UnknownUsages),
    /// The certificate of the CA has expired.
    #[error("the signer has expired: NotAfter={0}")]
    Expired(String),
    /// The certificate of the CA expires during the time for which certificates are backdated.
    #[error("refusing to sign a certificate that expired in the past: NotAfter={0}")]
    ExpiredInThePast(String),
    /// The times are out of range.
    #[error("the lifetime of the certificate cannot be computed")]
    Lifetime,
    /// The cryptographic library refuses to sign.
    #[error("cannot sign a certificate with the key of the CA")]
    Key,
}

impl SignError {
    /// Returns `true` if no authority can ever sign the request.
    pub(crate) const fn is_of_request(&self) -> bool {
        match self {
            Self::Request(_) | Self::Usages(_) => true,
            Self::Expired(_) | Self::ExpiredInThePast(_) | Self::Lifetime | Self::Key => false,
        }
    }
}

/// The time for which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

impl Validity {
    /// Computes the validity of a certificate that is signed at `now`, and ends at `limit` at the latest.
    ///
    /// # Errors
    /// The limit has passed.
    pub(crate) fn of(now: Timestamp, lifetime: SignedDuration, limit: Timestamp) -> Result<Self, SignError> {
        let moved = |by: SignedDuration| now.checked_add(by).map_err(|_| SignError::Lifetime);
        let not_before = moved(-BACKDATE)?;
        let shortened = if lifetime < SHORT { lifetime } else { lifetime - BACKDATE };
        let not_after = moved(shortened)?.min(limit);
        if not_before >= limit {
            return Err(SignError::Expired(go_time(limit)));
        }
        if now >= limit {
            return Err(SignError::ExpiredInThePast(go_time(limit)));
        }
        Ok(Self { not_before, not_after })
    }
}

/// Returns a time as Go prints it.
fn go_time(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string()
}

/// The parts of a certificate that its request does not have.
pub(super) struct Issue<'a> {
    pub(super) usages: Usages,
    pub(super) validity: Validity,
    pub(super) serial: [u8; SERIAL],
    /// The signature algorithm in DER.
    pub(super) algorithm: &'a [u8],
}

/// The fields of the issuer that a certificate repeats.
#[derive(Clone, Copy)]
pub(super) struct Issuer<'a> {
    /// The subject in DER.
    pub(super) subject: &'a [u8],
    pub(super) key_id: Option<&'a [u8]>,
}

/// Returns the part of a certificate that is signed; `None` if the public key cannot be written.
pub(super) fn to_be_signed(request: &CertificateRequest, issue: &Issue<'_>, issuer: Issuer<'_>) -> Option<Vec<u8>> {
    let subject = request.subject.to_der();
    let version = der::constructed(0xa0, &[&der::unsigned(&[2])]);
    let (not_before, not_after) =
        (der::write_time(issue.validity.not_before), der::write_time(issue.validity.not_after));
    let extensions = extensions(request, &issue.usages, &subject, issuer);
    Some(der::constructed(
        der::SEQUENCE,
        &[
            &version,
            &der::unsigned(&issue.serial),
            issue.algorithm,
            issuer.subject,
            &der::constructed(der::SEQUENCE, &[&not_before, &not_after]),
            &subject,
            &request.public_key.to_der()?,
            &der::constructed(0xa3, &[&der::element(der::SEQUENCE, &extensions)]),
        ],
    ))
}

/// Returns the extensions, in the order of Go.
fn extensions(request: &CertificateRequest, usages: &Usages, subject: &[u8], issuer: Issuer<'_>) -> Vec<u8> {
    let mut all = Vec::new();
    let mut add = |oid: &[u8], critical: &[u8], value: &[u8]| {
        let (oid, value) = (der::element(der::OID, oid), der::element(der::OCTET_STRING, value));
        all.extend(der::constructed(der::SEQUENCE, &[&oid, critical, &value]));
    };
    if usages.key_usage != 0 {
        add(OID_KEY_USAGE, CRITICAL, &usages.key_usage_der());
    }
    if !usages.extended.is_empty() {
        let oids: Vec<u8> = usages.extended.iter().flat_map(|oid| der::element(der::OID, oid)).collect();
        add(OID_EXTENDED_KEY_USAGE, &[], &der::element(der::SEQUENCE, &oids));
    }
    add(OID_BASIC_CONSTRAINTS, CRITICAL, &der::element(der::SEQUENCE, &[]));
    if let Some(key_id) = issuer.key_id.filter(|id| !id.is_empty() && issuer.subject != subject) {
        add(OID_AUTHORITY_KEY, &[], &der::constructed(der::SEQUENCE, &[&der::element(0x80, key_id)]));
    }
    let names = alternative_names(request);
    if !names.is_empty() {
        let is_subject_empty = subject == [der::SEQUENCE, 0];
        let critical = if is_subject_empty { CRITICAL } else { &[] };
        add(request::OID_SUBJECT_ALT_NAME, critical, &der::element(der::SEQUENCE, &names));
    }
    all
}

fn alternative_names(request: &CertificateRequest) -> Vec<u8> {
    let mut names = Vec::new();
    for (tag, texts) in [(request::DNS, &request.dns_names), (request::EMAIL, &request.email_addresses)] {
        for text in texts {
            der::write(&mut names, tag, text.as_bytes());
        }
    }
    for address in &request.ip_addresses {
        match address {
            IpAddr::V4(address) => der::write(&mut names, request::IP, &address.octets()),
            IpAddr::V6(address) => der::write(&mut names, request::IP, &address.octets()),
        }
    }
    for uri in &request.uris {
        der::write(&mut names, request::URI, uri.as_bytes());
    }
    names
}
