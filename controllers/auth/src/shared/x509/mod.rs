//! Certificate requests and certificates: reads PKCS #10 requests, verifies their signatures, and writes X.509 certificates.
//!
//! ```text
//! spec.request ──pem──▶ DER ──request──▶ CertificateRequest ──approver──▶ verdict
//!                                          │ Subject, names, key
//!                                          └──certificate──▶ DER, signed by an Authority ──pem──▶ status.certificate
//! ```
//!
//! # Guarantees
//! - A request that Go's `crypto/x509` reads is read with the same values, and a request that it refuses is refused.
//!   The exceptions are URIs with a user, which are refused here.
//! - The subject of a certificate is written from the subject that the approver has judged. No byte of the name in the
//!   request reaches a certificate otherwise.
//! - A certificate is equal, byte for byte, to the certificate that Go writes for the same request, but for serial number,
//!   times and random signatures.
//! - Reading takes time and memory linear in the length of the request, without recursion.
//! - A private key has no `Debug` form with its value.

mod authority;
mod certificate;
mod der;
mod duration;
mod name;
mod pem;
mod public_key;
mod request;
mod uri;
mod usages;

#[cfg(test)]
mod tests;

pub(crate) use authority::{Authority, AuthorityError, expiry_of_pem};
pub(crate) use duration::requested_duration;
pub(crate) use request::{CertificateRequest, RequestError};
