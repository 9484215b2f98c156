//! The serde deserializer of messages.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::de::value::{CowStrDeserializer, StrDeserializer, UnitDeserializer};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::wire::{Input, Malformed, Tag};
use super::{Kind, Message, Reader};

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Malformed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_map(Fields { input: Input(self.bytes), message: self.message, at: None })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

/// The fields of a message, in the order in which they come.
struct Fields<'de> {
    input: Input<'de>,
    message: &'static Message,
    at: Option<(Tag, Kind)>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Malformed;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Malformed> {
        while let Some(tag) = self.input.tag()? {
            if let Some(field) = self.message.iter().find(|field| field.number == tag.field) {
                self.at = Some((tag, field.kind));
                return seed.deserialize(StrDeserializer::new(field.name)).map(Some);
            }
            self.input.skip(tag)?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Malformed> {
        let (tag, kind) = self.at.take().ok_or_else(|| Malformed::Refused("a value without its key".to_owned()))?;
        seed.deserialize(Value { input: &mut self.input, tag, kind })
    }
}

/// The value of a field.
struct Value<'a, 'de> {
    input: &'a mut Input<'de>,
    tag: Tag,
    kind: Kind,
}

/// Reads a time as a string in whole seconds, or `None` if it is not set.
///
/// A time out of range is the nearest one in range: otherwise a client could create an object that controllers cannot
/// decode.
fn time(mut message: Input<'_>) -> Result<Option<String>, Malformed> {
    if message.0.is_empty() {
        return Ok(None);
    }
    let mut seconds = 0;
    while let Some(tag) = message.tag()? {
        match tag.field {
            1 => seconds = message.number(tag)?.cast_signed(),
            // Upstream leaves the nanoseconds out too, as JSON does.
            _ => message.skip(tag)?,
        }
    }
    let nearest = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Ok(Some(Timestamp::from_second(seconds).unwrap_or(nearest).to_string()))
}

/// The string of a `resource.Quantity`.
fn quantity(mut message: Input<'_>) -> Result<Cow<'_, str>, Malformed> {
    let mut text = Cow::Borrowed("");
    while let Some(tag) = message.tag()? {
        match tag.field {
            1 => text = message.text(tag)?,
            _ => message.skip(tag)?,
        }
    }
    Ok(text)
}

/// The number of an `intstr.IntOrString`, or its string as the error.
fn int_or_string(mut message: Input<'_>) -> Result<Result<i64, Cow<'_, str>>, Malformed> {
    let (mut is_string, mut number, mut text) = (false, 0, Cow::Borrowed(""));
    while let Some(tag) = message.tag()? {
        match tag.field {
            1 => is_string = message.number(tag)? != 0,
            2 => number = message.number(tag)?.cast_signed(),
            3 => text = message.text(tag)?,
            _ => message.skip(tag)?,
        }
    }
    Ok(if is_string { Err(text) } else { Ok(number) })
}

impl<'de> Deserializer<'de> for Value<'_, 'de> {
    type Error = Malformed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        let Self { input, tag, kind } = self;
        match kind {
            Kind::Text => Text(input.text(tag)?).deserialize_any(visitor),
            Kind::Integer => visitor.visit_i64(input.number(tag)?.cast_signed()),
            Kind::Flag => visitor.visit_bool(input.number(tag)? != 0),
            Kind::Bytes => visitor.visit_borrowed_bytes(input.bytes(tag)?),
            Kind::Time => match time(Input(input.bytes(tag)?))? {
                Some(time) => visitor.visit_string(time),
                None => visitor.visit_unit(),
            },
            Kind::One(message) => Reader::new(input.bytes(tag)?, message).deserialize_any(visitor),
            Kind::List(element) => visitor.visit_seq(Elements { input, tag, kind: *element, is_first: true }),
            Kind::Map(value) => visitor.visit_map(Entries { input, tag, kind: *value, is_first: true, value: None }),
            Kind::Quantity => Text(quantity(Input(input.bytes(tag)?))?).deserialize_any(visitor),
            Kind::IntOrString => match int_or_string(Input(input.bytes(tag)?))? {
                Ok(number) => visitor.visit_i64(number),
                Err(text) => Text(text).deserialize_any(visitor),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        if matches!(self.kind, Kind::Time) {
            return match time(Input(self.input.bytes(self.tag)?))? {
                Some(time) => visitor.visit_some(Text(Cow::Owned(time))),
                None => visitor.visit_none(),
            };
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        visitor.visit_enum(CowStrDeserializer::new(self.input.text(self.tag)?))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        self.input.skip(self.tag)?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

/// The elements of a list: fields of one tag that follow each other.
struct Elements<'a, 'de> {
    input: &'a mut Input<'de>,
    tag: Tag,
    kind: Kind,
    is_first: bool,
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Malformed;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Malformed> {
        if !std::mem::take(&mut self.is_first) && !self.input.tag_again(self.tag)? {
            return Ok(None);
        }
        seed.deserialize(Value { input: self.input, tag: self.tag, kind: self.kind }).map(Some)
    }
}

/// The entries of a map, each a message of its own.
struct Entries<'a, 'de> {
    input: &'a mut Input<'de>,
    tag: Tag,
    kind: Kind,
    is_first: bool,
    /// Tag of the value and the entry's bytes after it; `None` if the entry has no value.
    value: Option<(Tag, Input<'de>)>,
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = Malformed;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Malformed> {
        if !std::mem::take(&mut self.is_first) && !self.input.tag_again(self.tag)? {
            return Ok(None);
        }
        let mut entry = Input(self.input.bytes(self.tag)?);
        let mut key = Cow::Borrowed("");
        self.value = None;
        while let Some(tag) = entry.tag()? {
            match tag.field {
                1 => key = entry.text(tag)?,
                2 => {
                    self.value = Some((tag, entry));
                    entry.skip(tag)?;
                }
                _ => entry.skip(tag)?,
            }
        }
        seed.deserialize(Text(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Malformed> {
        match (self.value.take(), self.kind) {
            (Some((tag, mut input)), kind) => seed.deserialize(Value { input: &mut input, tag, kind }),
            (None, Kind::Text) => seed.deserialize(Text(Cow::Borrowed(""))),
            (None, _) => seed.deserialize(UnitDeserializer::new()),
        }
    }
}

/// A text, for strings, options and newtypes.
struct Text<'de>(Cow<'de, str>);

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Malformed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}
