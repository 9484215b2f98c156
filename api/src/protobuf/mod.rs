//! Reading views from protobuf, the form in which API servers keep built-in objects.
//!
//! A [`Message`] lists the fields that are read from a message, with their names in JSON. A [`Reader`] is a
//! deserializer of serde, so that a view reads protobuf through the same `Deserialize` as JSON. Other fields are
//! skipped by their length, without parsing them.
//!
//! Differences to JSON: empty strings, zero numbers and false flags are present; an unset time is present, and reads as
//! `null`; empty lists and maps are absent.
//!
//! # Upstream
//! `generated.proto` of `k8s.io/api` and `k8s.io/apimachinery`, and the encoding of
//! `apimachinery/pkg/runtime/serializer/protobuf`: an object is the magic number and a `runtime.Unknown` around it. Go
//! writes all elements of a list and all entries of a map in one go; scattered elements are refused.

mod de;
pub(crate) mod types;
mod wire;

pub use types::ProtobufType;
pub use wire::{Malformed, WireFields, WireValue, packed_varints};

use wire::Input;

/// The fields of a message that are read.
pub type Message = [Field];

/// A field of a message.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    // 0 for a field that only JSON has: a field of a custom resource.
    pub(crate) number: u32,
    // Empty for a message whose fields JSON has in the message around it.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) slot: Slot,
}

/// Where a declared type keeps the value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Nowhere: the type derives `Deserialize`.
    None,
    /// In the slot of that number.
    At(u16),
    /// In the slots of the fields of this message.
    Section,
}

/// Encoding of a field in protobuf.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A string of UTF-8 text.
    Text,
    /// An integer of any width, not one of `sint`.
    Integer,
    /// A boolean, encoded as a number.
    Flag,
    /// A `metav1.Time`; read as a string of RFC 3339, or as `null` if it is not set.
    Time,
    /// Bytes, borrowed from the message.
    Bytes,
    /// An `intstr.IntOrString`; read as the integer or the string.
    IntOrString,
    /// A `resource.Quantity`; read as its string.
    Quantity,
    /// A message with these fields.
    One(&'static Message),
    /// A list: strings, bytes or messages.
    List(&'static Kind),
    /// A map from strings.
    Map(&'static Kind),
}

impl Field {
    const fn new(number: u32, name: &'static str, kind: Kind) -> Self {
        Self { number, name, kind, slot: Slot::None }
    }

    /// A field of a declared type, kept in that slot.
    #[doc(hidden)]
    #[must_use]
    pub const fn in_slot(number: u32, name: &'static str, kind: Kind, slot: u16) -> Self {
        Self { number, name, kind, slot: Slot::At(slot) }
    }

    /// A message whose fields belong to the declared type around it.
    #[doc(hidden)]
    #[must_use]
    pub const fn section(number: u32, name: &'static str, message: &'static Message) -> Self {
        Self { number, name, kind: Kind::One(message), slot: Slot::Section }
    }

    /// Declares a field that is a string.
    #[must_use]
    pub const fn text(number: u32, name: &'static str) -> Self {
        Self::new(number, name, Kind::Text)
    }

    /// An integer of any width, not one of `sint`.
    #[must_use]
    pub const fn integer(number: u32, name: &'static str) -> Self {
        Self::new(number, name, Kind::Integer)
    }

    /// Declares a field that is a boolean.
    #[must_use]
    pub const fn flag(number: u32, name: &'static str) -> Self {
        Self::new(number, name, Kind::Flag)
    }

    /// Declares a `metav1.Time`; read as a string of RFC 3339, or as `null` if it is not set.
    #[must_use]
    pub const fn time(number: u32, name: &'static str) -> Self {
        Self::new(number, name, Kind::Time)
    }

    /// Bytes, borrowed from the message.
    #[must_use]
    pub const fn bytes(number: u32, name: &'static str) -> Self {
        Self::new(number, name, Kind::Bytes)
    }

    /// Declares a field that is a message.
    #[must_use]
    pub const fn one(number: u32, name: &'static str, message: &'static Message) -> Self {
        Self::new(number, name, Kind::One(message))
    }

    /// A list of strings.
    #[must_use]
    pub const fn strings(number: u32, name: &'static str) -> Self {
        Self::new(number, name, Kind::List(&Kind::Text))
    }

    /// A list of bytes, borrowed from the message: messages that are read later.
    #[must_use]
    pub const fn blobs(number: u32, name: &'static str) -> Self {
        Self::new(number, name, Kind::List(&Kind::Bytes))
    }

    /// A list of messages, which are [`Kind::One`], or of anything else.
    #[must_use]
    pub const fn list(number: u32, name: &'static str, element: &'static Kind) -> Self {
        Self::new(number, name, Kind::List(element))
    }

    /// A map from string to string.
    #[must_use]
    pub const fn map(number: u32, name: &'static str) -> Self {
        Self::new(number, name, Kind::Map(&Kind::Text))
    }
}

/// Deserializer for structs that reads one message.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'de> {
    bytes: &'de [u8],
    message: &'static Message,
}

impl<'de> Reader<'de> {
    /// Reads `bytes` as that message.
    #[must_use]
    pub const fn new(bytes: &'de [u8], message: &'static Message) -> Self {
        Self { bytes, message }
    }
}

const MAGIC: &[u8] = b"k8s\0";

/// Returns the message within the envelope of the API server.
///
/// # Errors
/// If the magic number is missing, or is not followed by a `runtime.Unknown`.
pub fn unwrap(object: &[u8]) -> Result<&[u8], Malformed> {
    const RAW: u32 = 2;
    let mut input = Input(object.strip_prefix(MAGIC).ok_or(Malformed::NoEnvelope)?);
    let mut raw = &[][..];
    while let Some(tag) = input.tag()? {
        if tag.field == RAW {
            raw = input.bytes(tag)?;
        } else {
            input.skip(tag)?;
        }
    }
    Ok(raw)
}

#[cfg(test)]
pub(crate) mod tests;
