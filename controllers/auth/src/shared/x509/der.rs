//! DER: a reader that borrows, and a writer.
//!
//! # Upstream
//! The reader accepts and refuses what `encoding/asn1` of Go does: lengths are minimal and below 2^31, an indefinite length
//! is refused.

use std::borrow::Cow;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const NUMERIC_STRING: u8 = 0x12;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const T61_STRING: u8 = 0x14;
pub(super) const IA5_STRING: u8 = 0x16;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const BMP_STRING: u8 = 0x1e;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// DER that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed DER: {0}")]
pub(crate) struct Malformed(pub(super) &'static str);

/// One element of DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element<'a> {
    /// First octet of the identifier: class, constructed bit and, below 31, the number.
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// Identifier, length and content.
    pub(super) whole: &'a [u8],
}

impl Element<'_> {
    /// Returns `true` if the element is of the class universal and has no elements inside.
    pub(super) const fn is_primitive_universal(&self) -> bool {
        self.tag & 0xe0 == 0
    }
}

/// Reads elements one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(der: &'a [u8]) -> Self {
        Self(der)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the tag of the next element without reading it.
    pub(super) fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Reads an element of any type.
    pub(super) fn any(&mut self) -> Result<Element<'a>, Malformed> {
        let der = self.0;
        let mut octets = der.iter().copied().enumerate();
        let mut next = || octets.next().ok_or(Malformed("truncated element"));
        let (_, tag) = next()?;
        if tag & 0x1f == 0x1f {
            read_high_tag(&mut next)?;
        }
        let (mut at, first) = next()?;
        let mut length = usize::from(first);
        if first >= 0x80 {
            length = 0;
            for _ in 0..first & 0x7f {
                let (position, octet) = next()?;
                if length >= 1 << 23 {
                    return Err(Malformed("length too large"));
                }
                length = length << 8 | usize::from(octet);
                if length == 0 {
                    return Err(Malformed("superfluous zeros in a length"));
                }
                at = position;
            }
            if length < 0x80 {
                return Err(Malformed("length that is not minimal"));
            }
        }
        let end = (at + 1).checked_add(length).filter(|end| *end <= der.len()).ok_or(Malformed("truncated content"))?;
        self.0 = &der[end..];
        Ok(Element { tag, content: &der[at + 1..end], whole: &der[..end] })
    }

    /// Reads an element of one type.
    pub(super) fn element(&mut self, tag: u8, what: &'static str) -> Result<Element<'a>, Malformed> {
        let element = self.any()?;
        if element.tag == tag { Ok(element) } else { Err(Malformed(what)) }
    }

    /// Reads the inside of an element of one type.
    pub(super) fn inside(&mut self, tag: u8, what: &'static str) -> Result<Self, Malformed> {
        Ok(Self(self.element(tag, what)?.content))
    }

    /// Reads the content of an object identifier.
    pub(super) fn oid(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let content = self.element(OID, what)?.content;
        check_oid(content)?;
        Ok(content)
    }

    /// Reads an optional boolean.
    pub(super) fn optional_boolean(&mut self) -> Result<bool, Malformed> {
        if self.peek() != Some(BOOLEAN) {
            return Ok(false);
        }
        boolean(self.any()?.content)
    }

    /// Reads the octets of a bit string. Unused bits are shifted out at the front.
    pub(super) fn bit_string(&mut self, what: &'static str) -> Result<Cow<'a, [u8]>, Malformed> {
        right_aligned(self.element(BIT_STRING, what)?.content)
    }
}

/// A number of 31 at least, of 31 bits at most, without leading zeros.
fn read_high_tag(next: &mut impl FnMut() -> Result<(usize, u8), Malformed>) -> Result<(), Malformed> {
    let mut number: u32 = 0;
    for position in 0..5 {
        let (_, octet) = next()?;
        if position == 0 && octet == 0x80 {
            return Err(Malformed("tag that is not minimal"));
        }
        number = number.checked_mul(128).ok_or(Malformed("tag too large"))? | u32::from(octet & 0x7f);
        if octet & 0x80 == 0 {
            return if (0x1f..=0x7fff_ffff).contains(&number) { Ok(()) } else { Err(Malformed("tag out of range")) };
        }
    }
    Err(Malformed("tag too large"))
}

/// Checks an object identifier: whole numbers of at most 31 bits, without leading zeros.
pub(super) fn check_oid(content: &[u8]) -> Result<(), Malformed> {
    if content.last().is_none_or(|last| last & 0x80 != 0) {
        return Err(Malformed("truncated object identifier"));
    }
    let mut number: u64 = 0;
    let mut is_first = true;
    for &octet in content {
        if is_first && octet == 0x80 {
            return Err(Malformed("object identifier that is not minimal"));
        }
        number = number << 7 | u64::from(octet & 0x7f);
        if number > 0x7fff_ffff {
            return Err(Malformed("number in an object identifier too large"));
        }
        is_first = octet & 0x80 == 0;
        if is_first {
            number = 0;
        }
    }
    Ok(())
}

pub(super) fn boolean(content: &[u8]) -> Result<bool, Malformed> {
    match content {
        [0] => Ok(false),
        [0xff] => Ok(true),
        _other => Err(Malformed("invalid boolean")),
    }
}

/// Checks an integer: at least one octet, none of them superfluous.
pub(super) fn check_integer(content: &[u8]) -> Result<(), Malformed> {
    match content {
        [] => Err(Malformed("empty integer")),
        [0, second, ..] if second & 0x80 == 0 => Err(Malformed("integer that is not minimal")),
        [0xff, second, ..] if second & 0x80 != 0 => Err(Malformed("integer that is not minimal")),
        _other => Ok(()),
    }
}

/// Checks an integer of at most 64 bits.
pub(super) fn check_small_integer(content: &[u8]) -> Result<(), Malformed> {
    check_integer(content)?;
    if content.len() > 8 { Err(Malformed("integer too large")) } else { Ok(()) }
}

/// Returns the octets of the content of a bit string, right-aligned.
pub(super) fn right_aligned(content: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let Some((&unused, octets)) = content.split_first() else { return Err(Malformed("empty bit string")) };
    let last = octets.last().copied();
    if unused > 7 || last.map_or(unused > 0, |last| u16::from(last) & ((1 << unused) - 1) != 0) {
        return Err(Malformed("invalid padding of a bit string"));
    }
    if unused == 0 {
        return Ok(Cow::Borrowed(octets));
    }
    let mut carry = 0;
    let shifted = octets.iter().map(|octet| {
        let shifted = octet >> unused | carry;
        carry = octet << (8 - unused);
        shifted
    });
    Ok(Cow::Owned(shifted.collect()))
}

/// Reads a time of either type; `None` if it is malformed or not in its canonical form.
pub(super) fn time(element: &Element<'_>) -> Option<Timestamp> {
    let text = std::str::from_utf8(element.content).ok()?;
    let (digits, is_utc) = match element.tag {
        UTC_TIME => (10, true),
        GENERALIZED_TIME => (14, false),
        _other => return None,
    };
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    let (clock, rest) = text.split_at(count);
    let full = match (is_utc, count) {
        // Two digits of the year: 1950 to 2049.
        (true, 10 | 12) => format!("{}{clock}", if clock < "50" { "20" } else { "19" }),
        (false, 14) => clock.to_owned(),
        _other => return None,
    };
    let (fraction, zone) = if is_utc { ("", rest) } else { split_fraction(rest)? };
    let seconds = if count == digits && is_utc { "00" } else { "" };
    let parsed =
        DateTime::strptime("%Y%m%d%H%M%S", format!("{full}{seconds}")).ok().filter(|_| !full.ends_with("60"))?;
    let nanoseconds: i64 = if fraction.is_empty() { 0 } else { format!("{fraction:0<9}").parse().ok()? };
    let time = parsed.to_zoned(TimeZone::UTC).ok()?.timestamp();
    time.checked_sub(offset(zone)?).ok()?.checked_add(SignedDuration::from_nanos(nanoseconds)).ok()
}

/// Splits a fraction of at most nine digits, the last of which is not zero, from the zone.
fn split_fraction(rest: &str) -> Option<(&str, &str)> {
    let Some(rest) = rest.strip_prefix('.') else { return Some(("", rest)) };
    let (fraction, zone) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
    let is_canonical = (1..=9).contains(&fraction.len()) && !fraction.ends_with('0');
    is_canonical.then_some((fraction, zone))
}

/// Returns the offset of a zone: `Z`, or a sign with four digits that are not all zero.
fn offset(zone: &str) -> Option<SignedDuration> {
    if zone == "Z" {
        return Some(SignedDuration::ZERO);
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _other => return None,
    };
    let number: i64 =
        digits.parse().ok().filter(|_| digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit()))?;
    let (hours, minutes) = (number / 100, number % 100);
    (number > 0 && hours < 24 && minutes < 60).then(|| SignedDuration::from_mins(sign * (hours * 60 + minutes)))
}

/// Appends an element to `der`.
pub(super) fn write(der: &mut Vec<u8>, tag: u8, content: &[u8]) {
    der.push(tag);
    let length = content.len();
    if let Some(short) = u8::try_from(length).ok().filter(|short| *short < 0x80) {
        der.push(short);
    } else {
        let octets = length.to_be_bytes();
        let skipped = octets.iter().take_while(|octet| **octet == 0).count();
        let count = u8::try_from(octets.len() - skipped).unwrap_or(u8::MAX);
        der.push(0x80 | count);
        der.extend_from_slice(&octets[skipped..]);
    }
    der.extend_from_slice(content);
}

pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut der = Vec::with_capacity(content.len() + 6);
    write(&mut der, tag, content);
    der
}

/// Returns an element with the elements inside.
pub(super) fn constructed(tag: u8, inside: &[&[u8]]) -> Vec<u8> {
    element(tag, &inside.concat())
}

/// Returns a bit string of whole octets.
pub(super) fn bit_string(octets: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], octets].concat())
}

/// Returns an integer that is not negative, from its octets.
pub(super) fn unsigned(octets: &[u8]) -> Vec<u8> {
    let first = octets.iter().position(|octet| *octet != 0);
    let octets = first.map_or(&[0][..], |first| &octets[first..]);
    let sign: &[u8] = if octets[0] & 0x80 == 0 { &[] } else { &[0] };
    element(INTEGER, &[sign, octets].concat())
}

/// Returns a time in seconds: `UTCTime` from 1950 to 2049, else `GeneralizedTime`.
pub(super) fn write_time(time: Timestamp) -> Vec<u8> {
    let time = time.to_zoned(TimeZone::UTC).datetime();
    if (1950..2050).contains(&time.year()) {
        element(UTC_TIME, time.strftime("%y%m%d%H%M%SZ").to_string().as_bytes())
    } else {
        element(GENERALIZED_TIME, time.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes())
    }
}
