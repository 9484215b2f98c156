//! JSON that becomes a value, with the fields that repeat in it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::field_path::{FieldPath, note};

/// Far deeper than any object of the API, and shallow enough for recursion. Go stops at 10,000.
const DEEPEST: usize = 250;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document {
    /// The value; of keys that repeat the last one counts.
    pub(super) value: Value,
    /// A message for each key that repeats.
    pub(super) repeated: Vec<String>,
}

impl From<Value> for Document {
    fn from(value: Value) -> Self {
        Self { value, repeated: Vec::new() }
    }
}

/// Parses a text that is nothing but one value. Bytes that are not UTF-8 become the replacement character.
///
/// # Errors
///
/// The text is no JSON, or nested too deeply.
pub(super) fn parse(text: &[u8]) -> Result<Document, String> {
    let text = String::from_utf8_lossy(text);
    let mut reader = Reader::default();
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    // The reader counts levels itself, of which serde_json takes fewer.
    deserializer.disable_recursion_limit();
    let value = Seed(&mut reader).deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value)).map_err(|error| error.to_string())?;
    Ok(Document { value, repeated: reader.repeated })
}

/// Returns a number that JSON can represent, as an integer if it fits 64 bits.
fn float<E: Error>(value: f64) -> Result<Value, E> {
    Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
}

#[derive(Default)]
struct Reader {
    depth: usize,
    path: FieldPath,
    repeated: Vec<String>,
}

/// Reads one value; serde's own way into a [`Value`] keeps no trace of keys that repeat.
struct Seed<'a>(&'a mut Reader);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.0.depth > DEEPEST {
            return Err(D::Error::custom("nested too deeply"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        #[expect(clippy::cast_precision_loss, reason = "whole numbers of the API have 63 bits")]
        i64::try_from(value).map_or_else(|_| float(value as f64), |value| Ok(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        float(value)
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        self.0.depth += 1;
        loop {
            let length = self.0.path.enter_item(list.len());
            let item = items.next_element_seed(Seed(self.0))?;
            self.0.path.leave(length);
            let Some(item) = item else {
                self.0.depth -= 1;
                return Ok(Value::Array(list));
            };
            list.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        self.0.depth += 1;
        while let Some(key) = entries.next_key::<String>()? {
            let length = self.0.path.enter(&key);
            if map.contains_key(&key) {
                note("duplicate", &self.0.path, &mut self.0.repeated);
            }
            let value = entries.next_value_seed(Seed(self.0))?;
            self.0.path.leave(length);
            map.insert(key, value);
        }
        self.0.depth -= 1;
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_json_is_refused() {
        for text in ["", "  ", "{", "foo", "{} {}", r#"{"a":"\q"}"#, r#"{"a":01}"#, "{a:1}", r#"{"a":1,}"#, "[1 2]"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn keys_that_repeat_are_reported_and_the_last_one_counts() {
        let document = parse(br#"{"a":[{"b":1.50,"b":1e2}],"a":2}"#).expect("the text is JSON");
        assert_eq!(document.value, json!({ "a": 2 }));
        assert_eq!(document.repeated, [r#"duplicate field "a[0].b""#, r#"duplicate field "a""#]);
    }

    #[test]
    fn numbers_are_whole_where_they_fit() {
        let document = parse(br"[1, -1, 1.5, 2.0, 9223372036854775807, 9223372036854775808]").expect("it is JSON");
        assert_eq!(document.value, json!([1, -1, 1.5, 2.0, i64::MAX, 9_223_372_036_854_775_808_f64]));
    }

    #[test]
    fn escapes_are_replaced() {
        let document = parse(br#""\u00e9\/\n\ud83d\ude00""#).expect("the text is JSON");
        assert_eq!(document.value, json!("é/\n😀"));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            drop(parse(&bytes));
        }

        #[test]
        fn what_serde_reads_is_read_alike(text in "[\\[\\]{},:\"a1\\-.e\\\\un ]{0,24}") {
            let ours = parse(text.as_bytes()).map(|document| document.value).ok();
            let theirs: Option<Value> = serde_json::from_str(&text).ok();
            prop_assert_eq!(ours, theirs);
        }
    }
}
