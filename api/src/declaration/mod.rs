//! The code behind [`view!`](crate::view!) and [`message!`](crate::message!).

mod decode;
mod macros;

pub use decode::{Object, no_metadata, no_slot, put, walk, walk_view};
pub use serde;

use crate::protobuf::types;
use crate::protobuf::{Kind, Message};

/// A type that is declared with [`view!`](crate::view!) or [`message!`](crate::message!).
pub trait Declared {
    /// Fields of the message, for JSON and protobuf.
    const MESSAGE: &'static Message;
}

/// The values of the fields of a declared type while it is decoded.
pub trait Slots: Default {
    /// Reads the value of the field that is kept in `slot`.
    fn read<'de, D: serde::Deserializer<'de>>(&mut self, slot: u16, value: D) -> Result<(), D::Error>;
}

/// Returns `true` if a view can be read from protobuf, which needs numbers for its fields. The first field is the
/// metadata, which always has a number.
///
/// # Panics
/// If the declaration contradicts itself. It is called while compiling.
#[must_use]
pub const fn has_numbers(view: &Message) -> bool {
    let (metadata, fields) = view.split_at(1);
    types::has_numbers(metadata) && types::has_numbers(fields)
}

/// The kind of a declared message.
///
/// # Panics
/// Where the declaration contradicts itself; it is called while compiling.
#[must_use]
pub const fn kind_of(message: &'static Message) -> Kind {
    let _ = types::has_numbers(message);
    Kind::One(message)
}

#[cfg(test)]
mod tests;
