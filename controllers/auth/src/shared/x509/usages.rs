//! The usages of a request, as the extensions `keyUsage` and `extKeyUsage`.

use std::fmt;

use super::der;

/// The key usages with their bits.
const KEY_USAGES: [(&str, u16); 10] = [
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// The extended key usages, in the order in which a certificate has them, with their object identifiers.
const EXTENDED: [(&str, &[u8]); 13] = [
    ("any", &[0x55, 0x1d, 0x25, 0]),
    ("server auth", &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[0x2b, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[0x2b, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[0x2b, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[0x2b, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[0x2b, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[0x2b, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 0x0a, 3, 3]),
    ("netscape sgc", &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1]),
];

/// Usages that no certificate can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) struct UnknownUsages(Vec<String>);

impl fmt::Display for UnknownUsages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unrecognized usage values: [")?;
        for (position, usage) in self.0.iter().enumerate() {
            let space = if position == 0 { "" } else { " " };
            write!(f, "{space}{usage:?}")?;
        }
        f.write_str("]")
    }
}

/// The usages of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Usages {
    /// One bit for each key usage.
    pub(super) key_usage: u16,
    /// The object identifiers of the extended key usages, sorted and without repetitions.
    pub(super) extended: Vec<&'static [u8]>,
}

impl Usages {
    /// Translates the usages of the API.
    ///
    /// # Errors
    /// At least one is unknown.
    pub(super) fn of<S: AsRef<str>>(usages: &[S]) -> Result<Self, UnknownUsages> {
        let mut key_usage = 0;
        let mut is_extended = [false; EXTENDED.len()];
        let mut unknown = Vec::new();
        for usage in usages.iter().map(AsRef::as_ref) {
            if let Some((_, bit)) = KEY_USAGES.iter().find(|(name, _)| *name == usage) {
                key_usage |= 1 << bit;
            } else if let Some(position) = EXTENDED.iter().position(|(name, _)| *name == usage) {
                is_extended[position] = true;
            } else {
                unknown.push(usage.to_owned());
            }
        }
        if !unknown.is_empty() {
            return Err(UnknownUsages(unknown));
        }
        let mut extended: Vec<&[u8]> =
            EXTENDED.iter().zip(is_extended).filter(|(_, is_used)| *is_used).map(|((_, oid), _)| *oid).collect();
        extended.dedup();
        Ok(Self { key_usage, extended })
    }

    /// Returns the bit string of `keyUsage`, without zeros at its end.
    pub(super) fn key_usage_der(&self) -> Vec<u8> {
        let [low, high] = self.key_usage.to_le_bytes().map(u8::reverse_bits);
        let octets = if high == 0 { &[low][..] } else { &[low, high] };
        let unused = octets.last().map_or(0, |last| u8::try_from(last.trailing_zeros()).unwrap_or_default());
        der::element(der::BIT_STRING, &[&[unused], octets].concat())
    }
}
