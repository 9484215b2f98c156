//! Certificate requests, PKCS #10.
//!
//! # Upstream
//! `ParseCertificateRequest` of Go's `crypto/x509`, and `ParseCSR` in `pkg/apis/certificates/v1`.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::der::{self, Malformed, Reader};
use super::name::Subject;
use super::public_key::{PublicKey, SignatureAlgorithm, VerifyError, verify};
use super::{pem, uri};

const OID_EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 14];
pub(super) const OID_SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 17];

// Context tags of alternative names.
pub(super) const EMAIL: u8 = 0x81;
pub(super) const DNS: u8 = 0x82;
pub(super) const URI: u8 = 0x86;
pub(super) const IP: u8 = 0x87;

/// A request that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    /// There is no block of PEM, or it has another label.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NotARequest,
    /// The structure is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// An extension is requested twice.
    #[error("x509: certificate request contains duplicate requested extensions")]
    DuplicateExtension,
    /// An alternative name is not ASCII.
    #[error("x509: SAN {0} is malformed")]
    Name(&'static str),
    /// An IP address has a length that no address has.
    #[error("x509: cannot parse IP address of length {0}")]
    IpLength(usize),
    /// A URI is invalid, or has a user.
    #[error("x509: cannot parse a URI of the subjectAltName: {0}")]
    Uri(#[from] uri::InvalidUri),
}

/// A certificate request: the parts that decide, or that the certificate repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificateRequest {
    pub(crate) subject: Subject,
    /// The DNS names, in their order.
    pub(crate) dns_names: Vec<String>,
    /// The e-mail addresses, in their order.
    pub(crate) email_addresses: Vec<String>,
    /// The IP addresses, in their order. An address of IPv4 that was mapped to IPv6 is one of IPv4.
    pub(crate) ip_addresses: Vec<IpAddr>,
    /// The URIs as the certificate has them, in their order.
    pub(crate) uris: Vec<String>,
    pub(super) public_key: PublicKey,
    signed: Vec<u8>,
    algorithm: SignatureAlgorithm,
    signature: Vec<u8>,
}

impl CertificateRequest {
    /// Reads the first block of a PEM. The signature is not verified.
    ///
    /// # Errors
    /// The first block is no request that can be read.
    pub(crate) fn from_pem(text: &[u8]) -> Result<Self, RequestError> {
        let block = pem::blocks(text).next().filter(|block| block.label == b"CERTIFICATE REQUEST");
        Self::from_der(&block.ok_or(RequestError::NotARequest)?.der)
    }

    pub(super) fn from_der(der: &[u8]) -> Result<Self, RequestError> {
        let mut reader = Reader::new(der);
        let mut request = reader.inside(der::SEQUENCE, "it is no certificate request")?;
        if !reader.is_empty() {
            return Err(Malformed("trailing data after the request").into());
        }
        let signed = request.element(der::SEQUENCE, "it has no request information")?;
        let algorithm = request.inside(der::SEQUENCE, "it has no signature algorithm")?;
        let signature = request.bit_string("it has no signature")?.into_owned();

        let mut information = Reader::new(signed.content);
        let version = information.element(der::INTEGER, "it has no version")?;
        der::check_small_integer(version.content)?;
        let subject = information.any()?;
        let mut key_information = information.inside(der::SEQUENCE, "it has no public key")?;
        let attributes = information.inside(0xa0, "it has no attributes")?;
        let public_key = PublicKey::read(&mut key_information)?;
        let names = Names::requested(attributes)?;
        Ok(Self {
            subject: Subject::read(subject.whole)?,
            dns_names: names.dns,
            email_addresses: names.email,
            ip_addresses: names.ip,
            uris: names.uri,
            public_key,
            signed: signed.whole.to_vec(),
            algorithm: SignatureAlgorithm::read(algorithm)?,
            signature,
        })
    }

    /// Verifies that the requester has the private key.
    ///
    /// # Errors
    /// The signature is wrong, or its algorithm is not supported.
    pub(crate) fn verify(&self) -> Result<(), VerifyError> {
        verify(&self.public_key, self.algorithm, &self.signed, &self.signature)
    }
}

#[derive(Debug, Default)]
struct Names {
    dns: Vec<String>,
    email: Vec<String>,
    ip: Vec<IpAddr>,
    uri: Vec<String>,
}

impl Names {
    /// Reads the alternative names of the extensions that the attributes request.
    fn requested(mut attributes: Reader<'_>) -> Result<Self, RequestError> {
        let mut requested = HashSet::new();
        let mut alternative = None;
        while !attributes.is_empty() {
            let attribute = attributes.any()?;
            // An attribute that does not parse is ignored.
            let Ok(Some(first)) = first_extensions(attribute.whole) else { continue };
            let mut extensions = Reader::new(first).inside(der::SEQUENCE, "the requested extensions are no list")?;
            while !extensions.is_empty() {
                let mut extension = extensions.inside(der::SEQUENCE, "a requested extension is no sequence")?;
                let oid = extension.oid("a requested extension has no type")?;
                extension.optional_boolean()?;
                let value = extension.element(der::OCTET_STRING, "a requested extension has no value")?.content;
                if !requested.insert(oid) {
                    return Err(RequestError::DuplicateExtension);
                }
                if oid == OID_SUBJECT_ALT_NAME {
                    alternative = Some(value);
                }
            }
        }
        alternative.map_or(Ok(Self::default()), Self::read)
    }

    fn read(extension: &[u8]) -> Result<Self, RequestError> {
        let mut names = Self::default();
        let mut inside = Reader::new(extension).inside(der::SEQUENCE, "the subjectAltName is no list")?;
        while !inside.is_empty() {
            let name = inside.any()?;
            if name.tag & 0x1f == 0x1f {
                return Err(Malformed("a name in subjectAltName has a tag that is too large").into());
            }
            match name.tag {
                EMAIL => names.email.push(ascii(name.content, "rfc822Name")?),
                DNS => names.dns.push(ascii(name.content, "dNSName")?),
                URI => names.uri.push(uri::normalized(&ascii(name.content, "uniformResourceIdentifier")?)?),
                IP => names.ip.push(ip(name.content)?),
                _other => {}
            }
        }
        Ok(names)
    }
}

/// Returns the first value of an attribute that requests extensions; `None` for other attributes, or without a value.
fn first_extensions(attribute: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let mut inside = Reader::new(attribute).inside(der::SEQUENCE, "an attribute is no sequence")?;
    let oid = inside.oid("an attribute has no type")?;
    let mut values = inside.inside(der::SET, "an attribute has no values")?;
    let mut first = None;
    while !values.is_empty() {
        let value = values.any()?;
        first.get_or_insert(value.whole);
    }
    Ok(first.filter(|_| oid == OID_EXTENSION_REQUEST))
}

fn ascii(content: &[u8], kind: &'static str) -> Result<String, RequestError> {
    let text = std::str::from_utf8(content).ok().filter(|text| text.is_ascii());
    text.map(str::to_owned).ok_or(RequestError::Name(kind))
}

fn ip(content: &[u8]) -> Result<IpAddr, RequestError> {
    if let Ok(octets) = <[u8; 4]>::try_from(content) {
        return Ok(Ipv4Addr::from(octets).into());
    }
    let octets = <[u8; 16]>::try_from(content).map_err(|_| RequestError::IpLength(content.len()))?;
    let address = Ipv6Addr::from(octets);
    Ok(address.to_ipv4_mapped().map_or(address.into(), IpAddr::from))
}
