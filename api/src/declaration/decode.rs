//! Decodes declared types: walks the object along their fields, and reads each value into its slot.

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::{Declared, Slots};
use crate::annotations::keeping;
use crate::decode_error::DecodeError;
use crate::needs::{Part, is_decoded};
use crate::protobuf::{Field, Kind, Message, Reader, Slot};

/// Reads the fields of a message into their slots. Undeclared fields are skipped, and `null` has no fields.
pub fn walk<'de, S: Slots, D: Deserializer<'de>>(message: &'static Message, object: D) -> Result<S, D::Error> {
    let mut slots = S::default();
    Walk { message, slots: &mut slots }.deserialize(object)?;
    Ok(slots)
}

/// Reads a value into its slot; `null` leaves it empty, as in Go.
pub fn put<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    slot: &mut Option<T>,
    name: &'static str,
    value: D,
) -> Result<(), D::Error> {
    if slot.is_some() {
        return Err(D::Error::duplicate_field(name));
    }
    *slot = Option::deserialize(value)?;
    Ok(())
}

/// The fields of one message.
struct Walk<'a, S> {
    message: &'static Message,
    slots: &'a mut S,
}

impl<'de, S: Slots> DeserializeSeed<'de> for Walk<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, object: D) -> Result<(), D::Error> {
        object.deserialize_any(self)
    }
}

impl<'de, S: Slots> Visitor<'de> for Walk<'_, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, object: D) -> Result<(), D::Error> {
        self.deserialize(object)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key_seed(Key(self.message))? {
            let Some(field) = field else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            match (field.slot, field.kind) {
                (Slot::At(slot), _) => map.next_value_seed(Value { slot, slots: &mut *self.slots })?,
                (Slot::Section, Kind::One(message)) => {
                    map.next_value_seed(Walk { message, slots: &mut *self.slots })?;
                }
                (Slot::Section | Slot::None, _) => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The declared field with the name of a key; `None` for a field that is not declared.
struct Key(&'static Message);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Option<&'static Field>;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<Self::Value, D::Error> {
        name.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Option<&'static Field>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(find(self.0, name))
    }
}

/// Returns the field with this name, which may be inside a message without a name.
fn find(message: &'static Message, name: &str) -> Option<&'static Field> {
    message.iter().find(|field| field.name == name).or_else(|| {
        message.iter().filter(|field| field.name.is_empty()).find_map(|field| match field.kind {
            Kind::One(message) => find(message, name),
            Kind::Text
            | Kind::Integer
            | Kind::Flag
            | Kind::Time
            | Kind::Bytes
            | Kind::IntOrString
            | Kind::Quantity
            | Kind::List(_)
            | Kind::Map(_) => None,
        })
    })
}

/// A value on its way into a slot.
struct Value<'a, S> {
    slot: u16,
    slots: &'a mut S,
}

impl<'de, S: Slots> DeserializeSeed<'de> for Value<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        self.slots.read(self.slot, value)
    }
}

/// Reads the fields of a view into their slots, and the annotations that the view keeps.
pub fn walk_view<'de, S: Slots, D: Deserializer<'de>>(
    message: &'static Message,
    annotations: &'static [&'static str],
    object: D,
) -> Result<S, D::Error> {
    keeping(annotations, || walk(message, object))
}

/// The error of a view without metadata.
pub fn no_metadata<T, E: Error>() -> Result<T, E> {
    Err(E::missing_field("metadata"))
}

/// Skips a value that has no slot.
pub fn no_slot<'de, D: Deserializer<'de>>(value: D) -> Result<(), D::Error> {
    IgnoredAny::deserialize(value).map(drop)
}

/// An object as JSON or as protobuf.
#[derive(Debug, Clone, Copy)]
pub enum Object<'a> {
    /// The value as JSON text.
    Json(&'a str),
    /// Its message, without the envelope.
    Protobuf(&'a [u8]),
}

impl Object<'_> {
    /// Decodes a view, or a part of it.
    pub fn decode<T: Declared + DeserializeOwned>(self) -> Result<T, DecodeError> {
        match self {
            Self::Json(json) => Ok(serde_json::from_str(json)?),
            Self::Protobuf(message) => Ok(T::deserialize(Reader::new(message, T::MESSAGE))?),
        }
    }

    /// Decodes a part if a controller needs it. Returns `None` if no field of it is set.
    ///
    /// The object is read once for each part. In protobuf that costs little, because skipped fields are not parsed.
    pub fn decode_part<P: Part + Declared + DeserializeOwned>(self) -> Result<Option<P>, DecodeError> {
        if !is_decoded::<P>() {
            return Ok(None);
        }
        Ok(Some(self.decode()?).filter(|part| part != P::empty()))
    }
}
