//! Reads parts of an X.509 certificate from its DER. Pure.

use jiff::Timestamp;

/// The tag of a sequence.
pub const SEQUENCE: u8 = 0x30;

const UTC_TIME: u8 = 23;
const GENERALIZED_TIME: u8 = 24;
/// `[0]`, the version of a certificate.
const VERSION: u8 = 0xa0;

/// The time for which a certificate is valid, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// First moment at which the certificate is valid.
    pub not_before: Timestamp,
    /// Last moment at which the certificate is valid.
    pub not_after: Timestamp,
}

/// The validity of a certificate (RFC 5280, 4.1); `None` if `certificate` is not a certificate.
#[must_use]
pub fn validity(certificate: &[u8]) -> Option<Validity> {
    let (certificate, _) = value(certificate, SEQUENCE)?;
    let (mut fields, _) = value(certificate, SEQUENCE)?;
    if let Some((_, rest)) = value(fields, VERSION) {
        fields = rest;
    }
    // The serial number, the algorithm and the issuer.
    for _ in 0..3 {
        (_, _, fields) = item(fields)?;
    }
    let (validity, _) = value(fields, SEQUENCE)?;
    let (tag, begin, rest) = item(validity)?;
    let not_before = time(tag, begin)?;
    let (tag, end, _) = item(rest)?;
    Some(Validity { not_before, not_after: time(tag, end)? })
}

fn time(tag: u8, content: &[u8]) -> Option<Timestamp> {
    let digits = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
    let time = match tag {
        // Two digits of the year: 1950 to 2049.
        UTC_TIME => format!("{}{digits}", if digits < "50" { "20" } else { "19" }),
        GENERALIZED_TIME => digits.to_owned(),
        _other => return None,
    };
    let parsed = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", time).ok()?;
    parsed.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|time| time.timestamp())
}

/// The content of the first item of `der`, and the rest of `der`; `None` if the item has another tag than `tag`.
#[must_use]
pub fn value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = item(der)?;
    (found == tag).then_some((content, rest))
}

/// Tag and content of the first item of `der`, and the rest of `der`; `None` if there is no whole item.
#[must_use]
pub fn item(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, der) = der.split_first()?;
    let (&first, der) = der.split_first()?;
    let (length, der) = if first < 0x80 {
        (usize::from(first), der)
    } else {
        // No certificate is longer than two bytes can say.
        let (bytes, der) = der.split_at_checked(usize::from(first & 0x7f)).filter(|(bytes, _)| bytes.len() <= 2)?;
        (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), der)
    };
    let (content, rest) = der.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn the_validity_is_read_from_either_type_of_time() {
        for (year, expected) in
            [(2027, "2027-01-01T00:00:00Z"), (1999, "1999-01-01T00:00:00Z"), (2050, "2050-01-01T00:00:00Z")]
        {
            let mut params = CertificateParams::new(Vec::new()).expect("there are no names");
            params.not_before = rcgen::date_time_ymd(1990, 1, 1);
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
            let key = KeyPair::generate().expect("there is randomness");
            let certificate = params.self_signed(&key).expect("it can be signed").der().clone();
            let read = validity(&certificate).expect("it is a certificate");
            assert_eq!(
                [read.not_before.to_string(), read.not_after.to_string()],
                ["1990-01-01T00:00:00Z".to_owned(), expected.to_owned()]
            );
            for length in 0..120 {
                assert_eq!(validity(&certificate[..length]), None, "{length} bytes");
            }
        }
    }
}
