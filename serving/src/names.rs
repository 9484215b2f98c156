//! The subject of an X.509 certificate. Pure.

use kcm_framework::x509::{SEQUENCE, item, value};

/// The parts of a subject that name a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subject {
    /// The last `commonName`, as Go reads it; empty without one.
    pub(super) common_name: String,
    /// Every `organizationName`, in order.
    pub(super) organizations: Vec<String>,
    /// Every attribute of the OID that upstream reads a user's UID from.
    pub(super) uids: Vec<String>,
}

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];
/// 1.3.6.1.4.1.57683.2
///
/// # Upstream
/// `X509UID` in `apimachinery/pkg/apis/asn1`.
const UID: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xc2, 0x53, 2];

const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 6;

/// Reads a subject: the content of the outer sequence of a `Name` (RFC 5280, 4.1.2.4), as webpki returns it. Returns
/// `None` if it is malformed.
pub(super) fn subject(name: &[u8]) -> Option<Subject> {
    let mut subject = Subject::default();
    let mut sets = name;
    while !sets.is_empty() {
        let (mut attributes, rest) = value(sets, SET)?;
        sets = rest;
        while !attributes.is_empty() {
            let (attribute, rest) = value(attributes, SEQUENCE)?;
            attributes = rest;
            let (oid, content) = value(attribute, OBJECT_IDENTIFIER)?;
            let (tag, content, _) = item(content)?;
            let known = [COMMON_NAME, ORGANIZATION, UID].contains(&oid);
            let Some(text) = known.then(|| text(tag, content)) else { continue };
            match oid {
                COMMON_NAME => subject.common_name = text?,
                ORGANIZATION => subject.organizations.push(text?),
                _uid => subject.uids.push(text?),
            }
        }
    }
    Some(subject)
}

/// A string of one of the types that certificates use.
fn text(tag: u8, content: &[u8]) -> Option<String> {
    match tag {
        // UTF8String, NumericString, PrintableString, IA5String
        12 | 18 | 19 | 22 => String::from_utf8(content.to_vec()).ok(),
        // T61String, which is read as Latin-1
        20 => Some(content.iter().map(|byte| char::from(*byte)).collect()),
        // BMPString
        30 => {
            let units = content.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            String::from_utf16(&units.collect::<Vec<_>>()).ok().filter(|_| content.len().is_multiple_of(2))
        }
        _other => None,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};
    use rustls::pki_types::CertificateDer;

    use super::*;

    fn of(attributes: &[(DnType, DnValue)]) -> Option<Subject> {
        let mut params = CertificateParams::new(Vec::new()).expect("there are no names");
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in attributes {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        let key = KeyPair::generate().expect("there is randomness");
        let certificate: CertificateDer<'static> = params.self_signed(&key).expect("it can be signed").der().clone();
        let parsed = webpki::EndEntityCert::try_from(&certificate).expect("it is a certificate");
        subject(parsed.subject())
    }

    #[test]
    fn user_and_groups_are_read_from_a_certificate() {
        let utf8 = |text: &str| DnValue::Utf8String(text.to_owned());
        let read = of(&[
            (DnType::CountryName, utf8("XX")),
            (DnType::OrganizationName, utf8("system:masters")),
            (DnType::CommonName, utf8("jäne")),
        ]);
        let expected = Subject {
            common_name: "jäne".to_owned(),
            organizations: vec!["system:masters".to_owned()],
            uids: Vec::new(),
        };
        assert_eq!(read, Some(expected));
        assert_eq!(of(&[]), Some(Subject::default()));
    }

    /// An attribute of a certificate, in DER.
    fn attribute(oid: &[u8], tag: u8, text: &[u8]) -> Vec<u8> {
        let item = |tag: u8, content: &[u8]| {
            let length = u8::try_from(content.len()).expect("it is short");
            assert!(length < 0x80);
            [&[tag, length], content].concat()
        };
        let content = [item(OBJECT_IDENTIFIER, oid), item(tag, text)].concat();
        item(SET, &item(SEQUENCE, &content))
    }

    #[test]
    fn every_type_of_string_and_repeated_attributes_are_read() {
        let name = [
            attribute(ORGANIZATION, 19, b"one"),
            attribute(ORGANIZATION, 20, b"tw\xf6"),
            attribute(COMMON_NAME, 22, b"first"),
            attribute(COMMON_NAME, 30, b"\0l\0a\0s\0t"),
            attribute(UID, 12, b"7"),
            attribute(&[0x55, 4, 6], 4, b"\xff"),
        ];
        let read = subject(&name.concat()).expect("it is a name");
        assert_eq!(
            (read.common_name.as_str(), &read.organizations[..], &read.uids[..]),
            ("last", &["one".to_owned(), "twö".to_owned()][..], &["7".to_owned()][..])
        );
    }

    #[test]
    fn what_is_no_name_is_refused_and_never_a_panic() {
        let name = attribute(COMMON_NAME, 12, b"jane");
        for length in 1..name.len() {
            assert_eq!(subject(&name[..length]), None, "{length} bytes");
        }
        for position in 0..name.len() {
            for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut broken = name.clone();
                broken[position] = byte;
                let _read = subject(&broken);
            }
        }
        assert_eq!(subject(&attribute(COMMON_NAME, 12, b"\xff")), None);
    }
}
