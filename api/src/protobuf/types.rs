//! Encoding of the types of fields.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Kind, Message};
use crate::int_or_percent::IntOrPercent;
use crate::intern::InternedStr;
use crate::key::Uid;
use crate::labels::Labels;
use crate::shared::Shared;
use crate::version::ResourceVersion;

/// A type of fields that can be read from protobuf.
///
/// `Option` is for pointers of the Go types. Go always writes a string, number or boolean that is not a pointer, and it
/// is read as `Some` even if it is empty.
pub trait ProtobufType {
    /// Encoding of a field of this type.
    const KIND: Kind;
}

macro_rules! encoded {
    ($($kind:expr => $($type:ty),+;)+) => {
        $($(impl ProtobufType for $type {
            const KIND: Kind = $kind;
        })+)+
    };
}

encoded! {
    Kind::Text => String, Box<str>, InternedStr, Uid, ResourceVersion;
    Kind::Integer => i32, i64;
    Kind::Flag => bool;
    Kind::Time => Timestamp;
    Kind::IntOrString => IntOrPercent;
    Kind::Map(&Kind::Text) => Labels;
}

impl<T: ProtobufType> ProtobufType for Option<T> {
    const KIND: Kind = T::KIND;
}

impl<T: ProtobufType> ProtobufType for Box<T> {
    const KIND: Kind = T::KIND;
}

impl<T: ProtobufType> ProtobufType for Box<[T]> {
    const KIND: Kind = Kind::List(&T::KIND);
}

impl<T: ProtobufType> ProtobufType for Shared<[T]> {
    const KIND: Kind = Kind::List(&T::KIND);
}

impl<T: ProtobufType> ProtobufType for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);
}

impl<K, V: ProtobufType> ProtobufType for BTreeMap<K, V> {
    const KIND: Kind = Kind::Map(&V::KIND);
}

/// Returns `true` if a declared message can be read from protobuf: all of its fields have numbers.
///
/// # Panics
/// If only some of its fields have a number, or two fields share a number or a name. It is
/// called while compiling.
pub(crate) const fn has_numbers(message: &Message) -> bool {
    let mut numbered = 0;
    let mut at = 0;
    while at < message.len() {
        let field = &message[at];
        let mut before = 0;
        while before < at {
            let other = &message[before];
            assert!(field.number == 0 || other.number != field.number, "two fields of a message have the same number");
            assert!(
                field.name.is_empty() || !is_same(other.name, field.name),
                "two fields of a message have the same name"
            );
            before += 1;
        }
        if field.number != 0 && kind_has_numbers(field.kind) {
            numbered += 1;
        }
        at += 1;
    }
    assert!(
        numbered == 0 || numbered == message.len(),
        "either all fields of a message have a protobuf number, or none"
    );
    numbered == message.len()
}

const fn kind_has_numbers(kind: Kind) -> bool {
    match kind {
        Kind::One(message) => has_numbers(message),
        Kind::List(kind) | Kind::Map(kind) => kind_has_numbers(*kind),
        Kind::Text | Kind::Integer | Kind::Flag | Kind::Time | Kind::Bytes | Kind::IntOrString | Kind::Quantity => true,
    }
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}
