//! Certificate authorities: a certificate with its private key.
//!
//! # Upstream
//! `pkg/controller/certificates/signer/ca_provider.go` and `X509KeyPair` of Go's `crypto/tls`.

use std::fmt;

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use jiff::{SignedDuration, Timestamp};

use super::certificate::{Issue, Issuer, SERIAL, SignError, Validity, to_be_signed};
use super::der::{self, Malformed, Reader};
use super::pem::{self, Block};
use super::public_key::{Curve, PublicKey};
use super::request::CertificateRequest;
use super::usages::Usages;

const OID_SUBJECT_KEY: &[u8] = &[0x55, 0x1d, 14];

// Signature algorithms, with their parameters.
const RSA_SHA256: &[u8] = &[0x30, 0x0d, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11, 5, 0];
const ECDSA_SHA256: &[u8] = &[0x30, 0x0a, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const ECDSA_SHA384: &[u8] = &[0x30, 0x0a, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3];
const ECDSA_SHA512: &[u8] = &[0x30, 0x0a, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4];
const ED25519: &[u8] = &[0x30, 5, 6, 3, 0x2b, 0x65, 0x70];

/// A certificate and a key that cannot sign certificates. The text names no content of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AuthorityError {
    /// The file has not exactly one block `CERTIFICATE` without headers, or its first block is another one.
    #[error("the certificate file must have exactly one PEM block CERTIFICATE, without headers, and has {0}")]
    Certificates(usize),
    /// The certificate is malformed.
    #[error("the certificate cannot be read: {0}")]
    Certificate(#[from] Malformed),
    /// No private key that the library accepts.
    #[error(
        "the key file has no private key that can sign: give one in PEM, RSA of 2,048 to 8,192 bits, ECDSA on P-256, P-384 \
         or P-521, or Ed25519, without a password"
    )]
    Key,
    /// The key does not belong to the certificate.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
}

/// A certificate authority that can sign.
pub(crate) struct Authority {
    subject: Vec<u8>,
    not_after: Timestamp,
    key_id: Option<Vec<u8>>,
    key: Key,
}

enum Key {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair, &'static [u8]),
    Ed25519(Box<Ed25519KeyPair>),
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

impl Authority {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    /// Any rule that upstream has for the two files is violated, or the library cannot sign with the key.
    pub(crate) fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, AuthorityError> {
        let is_certificate = |block: &Block<'_>| block.label == b"CERTIFICATE";
        // Without the filter for headers: upstream reads the pair in two ways, which must agree.
        let certificates: Vec<Block<'_>> = pem::blocks(certificate).filter(is_certificate).collect();
        let [block] = certificates.as_slice() else { return Err(AuthorityError::Certificates(certificates.len())) };
        if block.has_headers {
            return Err(AuthorityError::Certificates(0));
        }
        let certificate = Certificate::read(&block.der)?;
        // The first key must belong to the certificate, under a label that upstream knows.
        let is_key = |block: &Block<'_>| block.label == b"PRIVATE KEY" || block.label.ends_with(b" PRIVATE KEY");
        let block = pem::blocks(key).find(is_key).ok_or(AuthorityError::Key)?;
        let (key, public) = read_key(&block, &certificate.public_key)?;
        if certificate.public_key.bits().is_none_or(|bits| bits != public) {
            return Err(AuthorityError::Mismatch);
        }
        Ok(Self { subject: certificate.subject, not_after: certificate.not_after, key_id: certificate.key_id, key })
    }

    /// The subject in DER, which is the issuer of its certificates.
    pub(super) fn subject(&self) -> &[u8] {
        &self.subject
    }

    /// The identifier of the key of this authority, if its certificate has one.
    pub(super) fn key_id(&self) -> Option<&[u8]> {
        self.key_id.as_deref()
    }

    /// The last moment at which the certificate of the authority is valid.
    pub(crate) const fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Signs a certificate for a request, and returns it in PEM.
    ///
    /// # Errors
    /// The signature of the request cannot be verified, a usage is unknown, or the authority has expired.
    pub(crate) fn sign(
        &self,
        request: &CertificateRequest,
        usages: &[impl AsRef<str>],
        lifetime: SignedDuration,
        now: Timestamp,
    ) -> Result<String, SignError> {
        request.verify()?;
        let usages = Usages::of(usages)?;
        let validity = Validity::of(now, lifetime, self.not_after)?;
        let mut serial = [0; SERIAL];
        SystemRandom::new().fill(&mut serial).map_err(|_| SignError::Key)?;
        let der = self.issue(request, &Issue { usages, validity, serial, algorithm: self.algorithm() })?;
        Ok(pem::certificate(&der))
    }

    /// Returns a certificate in DER.
    pub(super) fn issue(&self, request: &CertificateRequest, issue: &Issue<'_>) -> Result<Vec<u8>, SignError> {
        let signed = to_be_signed(request, issue, Issuer { subject: self.subject(), key_id: self.key_id() })
            .ok_or(SignError::Key)?;
        let signature = self.signature(&signed)?;
        Ok(der::constructed(der::SEQUENCE, &[&signed, issue.algorithm, &der::bit_string(&signature)]))
    }

    pub(super) const fn algorithm(&self) -> &'static [u8] {
        match &self.key {
            Key::Rsa(_) => RSA_SHA256,
            Key::Ecdsa(_, algorithm) => algorithm,
            Key::Ed25519(_) => ED25519,
        }
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let random = SystemRandom::new();
        match &self.key {
            Key::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(|_| SignError::Key)?;
                Ok(signature)
            }
            Key::Ecdsa(pair, _) => Ok(pair.sign(&random, message).map_err(|_| SignError::Key)?.as_ref().to_vec()),
            Key::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }
}

/// Reads a key as its label says, and returns its public part.
fn read_key(block: &Block<'_>, public: &PublicKey) -> Result<(Key, Vec<u8>), AuthorityError> {
    let (label, der): (&[u8], &[u8]) = (block.label, &block.der);
    let refused = |_| AuthorityError::Key;
    let (is_pkcs8, is_rsa, is_ec) = (label == b"PRIVATE KEY", label == b"RSA PRIVATE KEY", label == b"EC PRIVATE KEY");
    match public {
        PublicKey::Rsa { .. } if is_pkcs8 || is_rsa => {
            let pair = if is_rsa { RsaKeyPair::from_der(der) } else { RsaKeyPair::from_pkcs8(der) }.map_err(refused)?;
            let public = pair.public_key().as_ref().to_vec();
            Ok((Key::Rsa(Box::new(pair)), public))
        }
        PublicKey::Ec { curve, .. } if is_pkcs8 || is_ec => {
            let (algorithm, identifier): (&'static EcdsaSigningAlgorithm, &'static [u8]) = match curve {
                Curve::P224 => return Err(AuthorityError::Key),
                Curve::P256 => (&ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_SHA256),
                Curve::P384 => (&ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_SHA384),
                Curve::P521 => (&ECDSA_P521_SHA512_ASN1_SIGNING, ECDSA_SHA512),
            };
            let pair = EcdsaKeyPair::from_private_key_der(algorithm, der).map_err(refused)?;
            let public = pair.public_key().as_ref().to_vec();
            Ok((Key::Ecdsa(pair, identifier), public))
        }
        PublicKey::Ed25519(_) if is_pkcs8 => {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(refused)?;
            let public = pair.public_key().as_ref().to_vec();
            Ok((Key::Ed25519(Box::new(pair)), public))
        }
        PublicKey::Rsa { .. } | PublicKey::Ec { .. } | PublicKey::Ed25519(_) | PublicKey::Other => {
            Err(AuthorityError::Key)
        }
    }
}

/// The parts of a certificate of an authority that matter here.
struct Certificate {
    subject: Vec<u8>,
    not_after: Timestamp,
    public_key: PublicKey,
    key_id: Option<Vec<u8>>,
}

impl Certificate {
    fn read(der: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(der);
        let mut certificate = reader.inside(der::SEQUENCE, "no certificate")?;
        if !reader.is_empty() {
            return Err(Malformed("trailing data after the certificate"));
        }
        let mut signed = certificate.inside(der::SEQUENCE, "no certificate")?;
        if signed.peek() == Some(0xa0) {
            signed.any()?;
        }
        der::check_integer(signed.element(der::INTEGER, "no serial number")?.content)?;
        signed.element(der::SEQUENCE, "no signature algorithm")?;
        signed.element(der::SEQUENCE, "no issuer")?;
        let mut validity = signed.inside(der::SEQUENCE, "no validity")?;
        let _not_before = validity.any()?;
        let not_after = der::time(&validity.any()?).ok_or(Malformed("malformed time"))?;
        let subject = signed.element(der::SEQUENCE, "no subject")?.whole.to_vec();
        let public_key = PublicKey::read(&mut signed.inside(der::SEQUENCE, "no public key")?)?;
        let key_id = key_id(signed)?;
        Ok(Self { subject, not_after, public_key, key_id })
    }
}

/// Reads the identifier of the subject's key from what follows the public key.
fn key_id(mut rest: Reader<'_>) -> Result<Option<Vec<u8>>, Malformed> {
    while !rest.is_empty() {
        let field = rest.any()?;
        if field.tag != 0xa3 {
            continue;
        }
        let mut extensions = Reader::new(field.content).inside(der::SEQUENCE, "malformed extensions")?;
        while !extensions.is_empty() {
            let mut extension = extensions.inside(der::SEQUENCE, "malformed extension")?;
            let oid = extension.oid("malformed extension")?;
            extension.optional_boolean()?;
            let value = extension.element(der::OCTET_STRING, "malformed extension")?.content;
            if oid == OID_SUBJECT_KEY {
                let id = Reader::new(value).element(der::OCTET_STRING, "malformed subjectKeyIdentifier")?;
                return Ok(Some(id.content.to_vec()));
            }
        }
    }
    Ok(None)
}

/// Returns the time at which the first certificate of the first block expires, whatever the label of the block; `None` if
/// it cannot be read.
pub(crate) fn expiry_of_pem(pem: &[u8]) -> Option<Timestamp> {
    let block = pem::blocks(pem).next()?;
    let first = Reader::new(&block.der).any().ok()?;
    Certificate::read(first.whole).ok().map(|certificate| certificate.not_after)
}
