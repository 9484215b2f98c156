//! Tags, numbers and lengths.

use std::borrow::Cow;

/// Bytes that are not the protobuf that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The magic number of the API is missing.
    #[error("the object does not begin as protobuf of the API does")]
    NoEnvelope,
    /// The bytes end within something.
    #[error("the message breaks off")]
    Truncated,
    /// A number of more than 64 bits.
    #[error("a number of the message is too large")]
    TooLarge,
    /// The wire type of groups, or a wire type that proto2 and proto3 do not have.
    #[error("field {field} has the unknown wire type {wire}")]
    WireType {
        /// The number of the field.
        field: u32,
        /// The wire type that was read.
        wire: u8,
    },
    /// A known field that is encoded as something else.
    #[error("field {field} is encoded as wire type {wire}, not as expected")]
    Unexpected {
        /// The number of the field.
        field: u32,
        /// The wire type that was read.
        wire: u8,
    },
    /// The error of the deserialized type.
    #[error("{0}")]
    Refused(String),
}

impl serde::de::Error for Malformed {
    fn custom<T: std::fmt::Display>(text: T) -> Self {
        Self::Refused(text.to_string())
    }
}

/// Number and encoding of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) field: u32,
    wire: u8,
}

const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const LENGTH: u8 = 2;
const FIXED_32: u8 = 5;

/// An encoded value, without the schema that gives it a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireValue<'a> {
    /// A number of variable length.
    Varint(u64),
    /// The bits of a number of 32 or 64 bits.
    Fixed(u64),
    /// A string, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
}

/// The fields of a message in order, each with its number. The first error ends the iteration.
#[derive(Debug, Clone)]
pub struct WireFields<'a>(Input<'a>);

impl<'a> WireFields<'a> {
    /// The fields of an encoded message.
    #[must_use]
    pub const fn of(message: &'a [u8]) -> Self {
        Self(Input(message))
    }
}

impl<'a> Iterator for WireFields<'a> {
    type Item = Result<(u32, WireValue<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.0.field().transpose();
        if matches!(field, Some(Err(_))) {
            self.0 = Input(&[]);
        }
        field
    }
}

/// The numbers of a packed list. The first error ends the iteration.
pub fn packed_varints(mut bytes: &[u8]) -> impl Iterator<Item = Result<u64, Malformed>> {
    std::iter::from_fn(move || {
        let mut input = Input(bytes);
        let number = (!bytes.is_empty()).then(|| input.varint());
        bytes = if matches!(number, Some(Err(_))) { &[] } else { input.0 };
        number
    })
}

/// The unread rest of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'de>(pub(super) &'de [u8]);

impl<'de> Input<'de> {
    /// The next tag; absent at the end.
    pub(super) fn tag(&mut self) -> Result<Option<Tag>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let number = self.varint()?;
        let field = u32::try_from(number >> 3).map_err(|_| Malformed::TooLarge)?;
        Ok(Some(Tag { field, wire: (number & 7) as u8 }))
    }

    /// The next field; absent at the end.
    fn field(&mut self) -> Result<Option<(u32, WireValue<'de>)>, Malformed> {
        let Some(tag) = self.tag()? else { return Ok(None) };
        let value = match tag.wire {
            VARINT => WireValue::Varint(self.varint()?),
            FIXED_64 => WireValue::Fixed(little_endian(self.take(8)?)),
            LENGTH => WireValue::Bytes(self.bytes(tag)?),
            FIXED_32 => WireValue::Fixed(little_endian(self.take(4)?)),
            wire => return Err(Malformed::WireType { field: tag.field, wire }),
        };
        Ok(Some((tag.field, value)))
    }

    /// Reads the next tag if it equals `expected`.
    pub(super) fn tag_again(&mut self, expected: Tag) -> Result<bool, Malformed> {
        let mut ahead = *self;
        let is_that = ahead.tag()? == Some(expected);
        if is_that {
            *self = ahead;
        }
        Ok(is_that)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(Malformed::Truncated)?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Malformed::TooLarge);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed::TooLarge)
    }

    fn take(&mut self, length: usize) -> Result<&'de [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The number of a field.
    pub(super) fn number(&mut self, tag: Tag) -> Result<u64, Malformed> {
        expect(tag, VARINT)?;
        self.varint()
    }

    /// The bytes of a field.
    pub(super) fn bytes(&mut self, tag: Tag) -> Result<&'de [u8], Malformed> {
        expect(tag, LENGTH)?;
        let length = usize::try_from(self.varint()?).map_err(|_| Malformed::TooLarge)?;
        self.take(length)
    }

    /// The string of a field.
    ///
    /// API servers accept bytes that are not UTF-8 in protobuf, and serve them as JSON with U+FFFD in their place. This
    /// does the same: otherwise a client could create an object that controllers cannot decode.
    pub(super) fn text(&mut self, tag: Tag) -> Result<Cow<'de, str>, Malformed> {
        Ok(String::from_utf8_lossy(self.bytes(tag)?))
    }

    /// Passes over a field.
    pub(super) fn skip(&mut self, tag: Tag) -> Result<(), Malformed> {
        match tag.wire {
            VARINT => self.varint().map(drop),
            FIXED_64 => self.take(8).map(drop),
            LENGTH => self.bytes(tag).map(drop),
            FIXED_32 => self.take(4).map(drop),
            wire => Err(Malformed::WireType { field: tag.field, wire }),
        }
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

const fn expect(tag: Tag, wire: u8) -> Result<(), Malformed> {
    if tag.wire == wire { Ok(()) } else { Err(Malformed::Unexpected { field: tag.field, wire: tag.wire }) }
}
