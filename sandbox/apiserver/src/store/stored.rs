//! [`Stored`]: a stored object as JSON, encoded once for all lists and watches. Pure.
//!
//! A pod takes 4 kB as JSON, and ten times that as a parsed value. So only the JSON is kept; the value is parsed on
//! demand and shared while it is referenced.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json;

/// An immutable stored object: JSON, parsed on demand.
#[derive(Debug)]
pub struct Stored {
    /// `kind` and `apiVersion` come first.
    text: Box<str>,
    /// Offset of the fields after these two.
    rest: usize,
    metadata: Range<usize>,
    parsed: Mutex<Weak<Value>>,
}

const TYPE: [&str; 2] = ["kind", "apiVersion"];

impl Stored {
    pub(crate) fn new(object: &Arc<Value>) -> Self {
        let mut text = vec![b'{'];
        for name in TYPE {
            if let Some(value) = object.get(name) {
                write_field(&mut text, name, value);
            }
        }
        let (rest, mut metadata) = (text.len(), 0..0);
        let fields = object.as_object().into_iter().flatten();
        for (name, value) in fields.filter(|(name, _)| !TYPE.contains(&name.as_str())) {
            let written = write_field(&mut text, name, value);
            if name == "metadata" {
                metadata = written;
            }
        }
        text.push(b'}');
        let text = String::from_utf8(text).expect("JSON is written as UTF-8").into_boxed_str();
        Self { text, rest, metadata, parsed: Mutex::new(Arc::downgrade(object)) }
    }

    /// Returns the object as JSON.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the object as JSON without `kind`, `apiVersion` and the opening brace.
    pub(crate) fn text_without_type(&self) -> &str {
        self.text[self.rest..].trim_start_matches(',')
    }

    /// Returns the object's metadata as JSON, as `PartialObjectMetadata` contains it.
    pub(crate) fn metadata_only(&self) -> String {
        let metadata = Some(&self.text[self.metadata.clone()]).filter(|text| !text.is_empty()).unwrap_or("null");
        format!("{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata}}}")
    }

    /// Returns the parsed object; concurrent holders share one value.
    #[must_use]
    pub fn value(&self) -> Arc<Value> {
        let mut parsed = self.parsed.lock();
        parsed.upgrade().unwrap_or_else(|| {
            let value = Arc::new(parse(&self.text));
            *parsed = Arc::downgrade(&value);
            value
        })
    }

    /// Returns the value at `path` without parsing the rest; null counts as absent.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<Value> {
        if let Some(value) = self.parsed.lock().upgrade() {
            return json::at(&value, path).cloned();
        }
        let (mut text, mut path) = (&*self.text, path);
        if let ["metadata", below @ ..] = path {
            (text, path) = (&self.text[self.metadata.clone()], below);
        }
        if text.is_empty() {
            return None;
        }
        for field in path {
            // Only a map has fields.
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            text = fields.get(*field)?.get();
        }
        Some(parse(text)).filter(|value| !value.is_null())
    }

    /// Returns the string at `path`, or an empty one.
    #[must_use]
    pub fn text_at(&self, path: &[&str]) -> String {
        if let Some(Value::String(text)) = self.at(path) { text } else { String::new() }
    }

    /// Returns the object with another resource version.
    pub(crate) fn under_version(&self, version: u64) -> Value {
        let mut object = Value::clone(&self.value());
        json::set(&mut object, &["metadata", "resourceVersion"], Some(version.to_string().into()));
        object
    }
}

/// Appends a field to the JSON map; returns the offset of its value.
fn write_field(text: &mut Vec<u8>, name: &str, value: &Value) -> Range<usize> {
    if text.len() > 1 {
        text.push(b',');
    }
    json::encode::append(text, name);
    text.push(b':');
    let from = text.len();
    json::encode::append(text, value);
    from..text.len()
}

/// Parses stored JSON without a depth limit: the decoder of requests has limited it.
pub(crate) fn parse(text: &str) -> Value {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    Value::deserialize(&mut reader).expect("what was written as JSON is JSON")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(object: Value) -> Stored {
        Stored::new(&Arc::new(object))
    }

    #[test]
    fn an_object_survives_a_round_trip() {
        let mut deep = json!(1);
        for _ in 0..250 {
            deep = json!({ "x": deep });
        }
        for object in [
            json!({}),
            json!({ "action": "a", "apiVersion": "v1", "kind": "Event", "metadata": { "name": "\"\u{1}é" } }),
            json!({ "spec": { "a": 0.1, "b": 1e300, "c": 2_071_723.049_165_725_4, "d": -1, "e": u64::MAX, "f": null } }),
            json!({ "spec": deep }),
        ] {
            assert_eq!(*stored(object.clone()).value(), object);
        }
    }

    #[test]
    fn the_type_comes_first_and_can_be_left_out() {
        let event = stored(json!({ "action": "a", "apiVersion": "v1", "kind": "Event", "metadata": {} }));
        assert_eq!(event.text(), r#"{"kind":"Event","apiVersion":"v1","action":"a","metadata":{}}"#);
        assert_eq!(event.text_without_type(), r#""action":"a","metadata":{}}"#);
        assert_eq!(stored(json!({ "kind": "Event", "apiVersion": "v1" })).text_without_type(), "}");
        assert_eq!(stored(json!({ "a": 1 })).text_without_type(), r#""a":1}"#);
    }

    #[test]
    fn fields_are_found_in_the_json_as_in_the_value() {
        let object = Arc::new(json!({
            "kind": "Pod", "metadata": { "name": "a", "labels": { "x": "1", "é\"": "2" } },
            "spec": { "nodeName": "n", "list": [1], "none": null },
        }));
        let (held, alone) = (Stored::new(&object), stored(Value::clone(&object)));
        for path in [
            &["metadata", "labels"][..],
            &["metadata", "labels", "é\""],
            &["spec", "nodeName"],
            &["spec", "nodeName", "below"],
            &["spec", "list"],
            &["spec", "none"],
            &["status", "phase"],
            &["kind"],
        ] {
            assert_eq!(alone.at(path), json::at(&object, path).cloned(), "{path:?}");
            assert_eq!(held.at(path), alone.at(path), "{path:?}");
        }
        assert_eq!(stored(json!({})).at(&["metadata", "name"]), None);
    }

    #[test]
    fn a_parsed_value_is_shared_while_it_is_referenced() {
        let object = stored(json!({ "a": 1 }));
        let value = object.value();
        assert!(Arc::ptr_eq(&value, &object.value()));
        let gone = Arc::downgrade(&value);
        drop(value);
        assert!(gone.upgrade().is_none());
    }
}
