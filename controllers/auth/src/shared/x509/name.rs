//! The subject of requests and certificates: the attributes that Go keeps.
//!
//! # Upstream
//! `pkix.Name` of Go, with `FillFromRDNSequence` and `ToRDNSequence`.

use super::der::{self, Element, Malformed, Reader};

/// The names in a request that a certificate repeats, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) country: Vec<String>,
    pub(crate) province: Vec<String>,
    pub(crate) locality: Vec<String>,
    pub(crate) street_address: Vec<String>,
    pub(crate) postal_code: Vec<String>,
    pub(crate) organization: Vec<String>,
    pub(crate) organizational_unit: Vec<String>,
    /// `CN`; the last of several.
    pub(crate) common_name: String,
    /// `serialNumber`; the last of several.
    pub(crate) serial_number: String,
}

// Last number of the object identifiers, which begin with 2.5.4.
const COMMON_NAME: u8 = 3;
const SERIAL_NUMBER: u8 = 5;
const COUNTRY: u8 = 6;
const LOCALITY: u8 = 7;
const PROVINCE: u8 = 8;
const STREET_ADDRESS: u8 = 9;
const ORGANIZATION: u8 = 10;
const ORGANIZATIONAL_UNIT: u8 = 11;
const POSTAL_CODE: u8 = 17;

impl Subject {
    /// Reads a name. Attributes of other types, or without text, are left out.
    ///
    /// # Errors
    /// The name is malformed, or the value of any of its attributes.
    pub(super) fn read(name: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(name);
        let mut sets = reader.inside(der::SEQUENCE, "the subject is no name")?;
        if !reader.is_empty() {
            return Err(Malformed("trailing data after the subject"));
        }
        let mut subject = Self::default();
        while !sets.is_empty() {
            let mut set = sets.inside(der::SET, "the subject has a part that is no set")?;
            while !set.is_empty() {
                let mut attribute = set.inside(der::SEQUENCE, "the subject has an attribute without type and value")?;
                let kind = attribute.oid("the subject has an attribute without a type")?;
                let text = text(&attribute.any()?)?;
                if let (&[0x55, 4, kind], Some(text)) = (kind, text) {
                    subject.add(kind, text);
                }
            }
        }
        Ok(subject)
    }

    fn add(&mut self, kind: u8, text: String) {
        match kind {
            COMMON_NAME => self.common_name = text,
            SERIAL_NUMBER => self.serial_number = text,
            COUNTRY => self.country.push(text),
            LOCALITY => self.locality.push(text),
            PROVINCE => self.province.push(text),
            STREET_ADDRESS => self.street_address.push(text),
            ORGANIZATION => self.organization.push(text),
            ORGANIZATIONAL_UNIT => self.organizational_unit.push(text),
            POSTAL_CODE => self.postal_code.push(text),
            _other => {}
        }
    }

    /// Returns the name in DER: each type is one part, whose values are sorted.
    pub(super) fn to_der(&self) -> Vec<u8> {
        let one = |text: &str| if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
        let (common_name, serial_number) = (one(&self.common_name), one(&self.serial_number));
        let parts: [(u8, &[String]); 9] = [
            (COUNTRY, &self.country),
            (PROVINCE, &self.province),
            (LOCALITY, &self.locality),
            (STREET_ADDRESS, &self.street_address),
            (POSTAL_CODE, &self.postal_code),
            (ORGANIZATION, &self.organization),
            (ORGANIZATIONAL_UNIT, &self.organizational_unit),
            (COMMON_NAME, &common_name),
            (SERIAL_NUMBER, &serial_number),
        ];
        let mut name = Vec::new();
        for (kind, values) in parts.into_iter().filter(|(_, values)| !values.is_empty()) {
            let mut attributes: Vec<Vec<u8>> = values.iter().map(|value| attribute(kind, value)).collect();
            attributes.sort_unstable();
            der::write(&mut name, der::SET, &attributes.concat());
        }
        der::element(der::SEQUENCE, &name)
    }
}

fn attribute(kind: u8, value: &str) -> Vec<u8> {
    let is_printable = value.bytes().all(is_printable);
    let tag = if is_printable { der::PRINTABLE_STRING } else { der::UTF8_STRING };
    der::constructed(der::SEQUENCE, &[&der::element(der::OID, &[0x55, 4, kind]), &der::element(tag, value.as_bytes())])
}

/// Returns `true` for the characters of a `PrintableString`.
const fn is_printable(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b' ' | b'\'' | b'(' | b')' | b'+'..=b'/' | b':' | b'=' | b'?')
}

/// Reads the value of an attribute; `None` if it is no text.
fn text(value: &Element<'_>) -> Result<Option<String>, Malformed> {
    if !value.is_primitive_universal() {
        return Ok(None);
    }
    let content = value.content;
    let ascii = |is_valid: bool, what| match std::str::from_utf8(content) {
        Ok(text) if is_valid => Ok(Some(text.to_owned())),
        Ok(_) | Err(_) => Err(Malformed(what)),
    };
    let checked = |result: Result<(), Malformed>| result.map(|()| None);
    match value.tag {
        // Go tolerates `*` and `&`.
        der::PRINTABLE_STRING => {
            let is_valid = content.iter().all(|octet| is_printable(*octet) || matches!(octet, b'*' | b'&'));
            ascii(is_valid, "invalid PrintableString in the subject")
        }
        der::NUMERIC_STRING => {
            let is_valid = content.iter().all(|octet| octet.is_ascii_digit() || *octet == b' ');
            ascii(is_valid, "invalid NumericString in the subject")
        }
        der::IA5_STRING => ascii(content.is_ascii(), "invalid IA5String in the subject"),
        der::T61_STRING => Ok(Some(content.iter().copied().map(char::from).collect())),
        der::UTF8_STRING => ascii(true, "invalid UTF8String in the subject"),
        der::BMP_STRING => bmp(content).map(Some).ok_or(Malformed("invalid BMPString in the subject")),
        der::BOOLEAN => checked(der::boolean(content).map(drop)),
        der::INTEGER => checked(der::check_small_integer(content)),
        der::BIT_STRING => checked(der::right_aligned(content).map(drop)),
        der::OID => checked(der::check_oid(content)),
        der::UTC_TIME | der::GENERALIZED_TIME => match der::time(value) {
            Some(_) => Ok(None),
            None => Err(Malformed("invalid time in the subject")),
        },
        _other => Ok(None),
    }
}

/// Reads text of two octets per character, without surrogates and noncharacters.
fn bmp(content: &[u8]) -> Option<String> {
    if !content.len().is_multiple_of(2) {
        return None;
    }
    let content = content.strip_suffix(&[0, 0]).unwrap_or(content);
    let characters = content.chunks_exact(2).map(|pair| {
        let point = u32::from(pair[0]) << 8 | u32::from(pair[1]);
        char::from_u32(point).filter(|_| !matches!(point, 0xfffe | 0xffff | 0xfdd0..=0xfdef))
    });
    characters.collect()
}
