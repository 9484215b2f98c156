//! Protobuf, in which kubectl and other programs in Go send objects: turned into the JSON that they mean.
//!
//! # Upstream
//! `apimachinery/pkg/runtime/serializer/protobuf`, and the numbers of fields in the tags of the Go types

use kcm_api::protobuf::{Malformed, WireFields, WireValue, packed_varints};
use serde_json::{Map, Number, Value};

use super::json;
use crate::schema::{self, Empty, Field, Struct, Type};

/// Every object begins so.
const PREFIX: &[u8] = b"k8s\0";
const DEEPEST: usize = 100;

/// An object, as far as all kinds are alike.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Envelope<'a> {
    pub(super) api_version: String,
    pub(super) kind: String,
    content: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// # Errors
    ///
    /// The bytes are none of Kubernetes' objects.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, String> {
        let bytes = bytes.strip_prefix(PREFIX).ok_or("the data is no protobuf message of Kubernetes")?;
        let mut envelope = Self::default();
        for part in fields(bytes) {
            match part? {
                (1, WireValue::Bytes(identity)) => {
                    for part in fields(identity) {
                        match part? {
                            (1, WireValue::Bytes(text)) => envelope.api_version = text_of(text),
                            (2, WireValue::Bytes(text)) => envelope.kind = text_of(text),
                            _ => {}
                        }
                    }
                }
                (2, WireValue::Bytes(content)) => envelope.content = content,
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// The object as JSON, read as the given type.
    ///
    /// # Errors
    ///
    /// The bytes are no message.
    pub(super) fn read(self, of: Option<&'static Struct>) -> Result<Value, String> {
        let mut entries = Map::new();
        for (name, text) in [("apiVersion", self.api_version), ("kind", self.kind)] {
            if !text.is_empty() {
                entries.insert(name.to_owned(), text.into());
            }
        }
        if let Some(of) = of {
            message(of, "", self.content, &mut entries, 0)?;
        }
        Ok(Value::Object(entries))
    }
}

/// Reads the fields of a message; `within` is the number of the embedded message that it is.
fn message(
    of: &'static Struct,
    within: &str,
    bytes: &[u8],
    entries: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    if depth > DEEPEST {
        return Err("protobuf: nesting is too deep".to_owned());
    }
    for part in fields(bytes) {
        let (number, part) = part?;
        let number = if within.is_empty() { number.to_string() } else { format!("{within}.{number}") };
        if let Some(field) = of.fields.iter().find(|field| field.number == Some(&number)) {
            add(field, part, entries, depth)?;
        } else if let WireValue::Bytes(bytes) = part {
            let prefix = format!("{number}.");
            if of.fields.iter().any(|field| field.number.is_some_and(|it| it.starts_with(&prefix))) {
                message(of, &number, bytes, entries, depth + 1)?;
            }
        }
    }
    Ok(())
}

/// Adds one occurrence of a field to the fields of an object.
fn add(
    field: &'static Field,
    part: WireValue<'_>,
    entries: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    match (&field.of, part) {
        (Type::List(item), WireValue::Bytes(bytes)) if is_packed(item) => {
            for number in packed_varints(bytes) {
                let number = number.map_err(|error| malformed(&error))?;
                push(field.name, value(item, WireValue::Varint(number), depth)?, entries);
            }
        }
        (Type::List(item), part) => push(field.name, value(item, part, depth)?, entries),
        (Type::Map(item), WireValue::Bytes(bytes)) => {
            let (mut key, mut content) = (String::new(), None);
            for part in fields(bytes) {
                match part? {
                    (1, WireValue::Bytes(text)) => key = text_of(text),
                    (2, part) => content = Some(map_value(item, part, depth)?),
                    _ => {}
                }
            }
            let content = content.unwrap_or_else(|| zero(item));
            if let Value::Object(map) = entries.entry(field.name).or_insert_with(|| Value::Object(Map::new())) {
                map.insert(key, content);
            }
        }
        (of, part) => {
            let value = value(of, part, depth)?;
            // A field that is no pointer is always written, and has no meaning if it is empty.
            let is_empty = match &value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Bool(value) => !value,
                Value::Number(number) => number.as_f64() == Some(0.0) && *of != Type::IntOrString,
                Value::Array(_) | Value::Object(_) => false,
            };
            if !is_empty || (field.empty == Empty::Kept && !value.is_null()) {
                entries.insert(field.name.to_owned(), value);
            }
        }
    }
    Ok(())
}

fn is_packed(item: &Type) -> bool {
    matches!(item, Type::Int32 | Type::Int64 | Type::Bool)
}

fn push(name: &str, item: Value, entries: &mut Map<String, Value>) {
    if let Value::Array(items) = entries.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
        items.push(item);
    }
}

/// A value of a map; lists in maps are messages whose first field is the list.
fn map_value(of: &'static Type, part: WireValue<'_>, depth: usize) -> Result<Value, String> {
    let (Type::List(item), WireValue::Bytes(bytes)) = (of, &part) else { return value(of, part, depth) };
    let mut items = Vec::new();
    for part in fields(bytes) {
        if let (1, part) = part? {
            items.push(value(item, part, depth)?);
        }
    }
    Ok(Value::Array(items))
}

fn value(of: &'static Type, part: WireValue<'_>, depth: usize) -> Result<Value, String> {
    Ok(match (of, part) {
        (Type::Bool, WireValue::Varint(number)) => (number != 0).into(),
        (Type::Int32 | Type::Int64, WireValue::Varint(number)) => number.cast_signed().into(),
        (Type::Number, WireValue::Fixed(bits)) => {
            Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
        }
        (Type::String, WireValue::Bytes(bytes)) => text_of(bytes).into(),
        (Type::Bytes, WireValue::Bytes(bytes)) => to_base64(bytes),
        (Type::Struct(id), WireValue::Bytes(bytes)) => {
            let mut entries = Map::new();
            message(schema::types().get(*id), "", bytes, &mut entries, depth + 1)?;
            Value::Object(entries)
        }
        (Type::Quantity, WireValue::Bytes(bytes)) => match first(bytes, 1)? {
            Some(WireValue::Bytes(text)) if !text.is_empty() => text_of(text).into(),
            _ => "0".into(),
        },
        (Type::IntOrString, WireValue::Bytes(bytes)) => int_or_string(bytes)?,
        (Type::Time, WireValue::Bytes(bytes)) => time(bytes)?,
        // JSON within protobuf.
        (Type::Any, WireValue::Bytes(bytes)) => match first(bytes, 1)? {
            Some(WireValue::Bytes(text)) if !text.is_empty() => json::parse(text)?.value,
            _ => Value::Null,
        },
        (_, WireValue::Varint(_) | WireValue::Fixed(_) | WireValue::Bytes(_)) => {
            return Err("protobuf: a field of another wire type".to_owned());
        }
    })
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_string, mut number, mut text) = (false, 0, String::new());
    for part in fields(bytes) {
        match part? {
            (1, WireValue::Varint(kind)) => is_string = kind == 1,
            (2, WireValue::Varint(value)) => number = value.cast_signed(),
            (3, WireValue::Bytes(value)) => text = text_of(value),
            _ => {}
        }
    }
    Ok(if is_string { text.into() } else { number.into() })
}

/// An empty message is no time at all.
fn time(bytes: &[u8]) -> Result<Value, String> {
    let (mut seconds, mut nanoseconds) = (None, 0);
    for part in fields(bytes) {
        match part? {
            (1, WireValue::Varint(number)) => seconds = Some(number.cast_signed()),
            (2, WireValue::Varint(number)) => nanoseconds = i32::try_from(number).unwrap_or(0),
            _ => {}
        }
    }
    let Some(seconds) = seconds else { return Ok(Value::Null) };
    let time = jiff::Timestamp::new(seconds, nanoseconds).map_err(|_| "protobuf: time out of range".to_owned())?;
    // More digits than most fields hold; the typed reader cuts them off.
    Ok(kcm_api::time::format_micros(time).into())
}

/// Bytes as base64 with padding.
fn to_base64(bytes: &[u8]) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).unwrap_or_default()
}

fn zero(of: &Type) -> Value {
    match of {
        Type::String | Type::Bytes => "".into(),
        Type::Int32
        | Type::Int64
        | Type::Number
        | Type::Bool
        | Type::Time
        | Type::Quantity
        | Type::IntOrString
        | Type::Any
        | Type::List(_)
        | Type::Map(_)
        | Type::Struct(_) => Value::Null,
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last part of a number.
fn first(bytes: &[u8], number: u32) -> Result<Option<WireValue<'_>>, String> {
    let mut found = None;
    for part in fields(bytes) {
        let (at, part) = part?;
        if at == number {
            found = Some(part);
        }
    }
    Ok(found)
}

/// The fields of a message with their numbers.
fn fields(message: &[u8]) -> impl Iterator<Item = Result<(u32, WireValue<'_>), String>> {
    WireFields::of(message).map(|field| field.map_err(|error| malformed(&error)))
}

fn malformed(error: &Malformed) -> String {
    format!("protobuf: {error}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A part with bytes.
    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).expect("a test's parts are short");
        [&[number << 3 | 2, length], content].concat()
    }

    fn varint_part(number: u8, value: u8) -> Vec<u8> {
        vec![number << 3, value]
    }

    fn read(api_version: &str, kind: &str, content: &[u8]) -> serde_json::Value {
        let identity = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        let body = [PREFIX.to_vec(), bytes(1, &identity), bytes(2, content)].concat();
        let envelope = Envelope::open(&body).expect("the body is an object");
        assert_eq!((envelope.api_version.as_str(), envelope.kind.as_str()), (api_version, kind));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        envelope.read(schema::types().of_kind(group, version, kind)).expect("the content is a message")
    }

    #[test]
    fn objects_become_the_json_that_they_mean() {
        let metadata =
            [bytes(1, b"web"), bytes(2, b""), bytes(8, &[]), bytes(11, &[bytes(1, b"a"), bytes(2, b"b")].concat())]
                .concat();
        let container = [
            bytes(1, b"c"),
            bytes(6, &[varint_part(3, 80), bytes(4, b"TCP")].concat()),
            // Limits: cpu.
            bytes(8, &bytes(1, &[bytes(1, b"cpu"), bytes(2, &bytes(1, b"1"))].concat())),
        ]
        .concat();
        let volume = [bytes(1, b"v"), bytes(2, &bytes(2, &[]))].concat();
        let spec =
            [bytes(1, &volume), bytes(2, &container), bytes(3, b""), varint_part(4, 0), varint_part(11, 0)].concat();
        let expected = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "web", "labels": { "a": "b" } },
            "spec": {
                "containers": [{
                    "name": "c",
                    "ports": [{ "containerPort": 80, "protocol": "TCP" }],
                    "resources": { "limits": { "cpu": "1" } },
                }],
                "volumes": [{ "name": "v", "emptyDir": {} }],
                // A pointer: it is there although it is nothing.
                "terminationGracePeriodSeconds": 0,
            },
        });
        assert_eq!(read("v1", "Pod", &[bytes(1, &metadata), bytes(2, &spec)].concat()), expected);
    }

    #[test]
    fn values_with_a_form_of_their_own_are_read() {
        let port = [varint_part(3, 80), bytes(4, &[varint_part(1, 1), bytes(3, b"http")].concat())].concat();
        let service = read("v1", "Service", &bytes(2, &bytes(1, &port)));
        assert_eq!(service["spec"]["ports"], json!([{ "port": 80, "targetPort": "http" }]));
        let secret = read("v1", "Secret", &bytes(2, &[bytes(1, b"k"), bytes(2, b"ab")].concat()));
        assert_eq!(secret["data"], json!({ "k": "YWI=" }));
        let lease = read("coordination.k8s.io/v1", "Lease", &bytes(2, &bytes(4, &varint_part(1, 0))));
        assert_eq!(lease["spec"], json!({ "renewTime": "1970-01-01T00:00:00.000000Z" }));
        let revision = read("apps/v1", "ControllerRevision", &bytes(2, &bytes(1, br#"{"a":1}"#)));
        assert_eq!(revision["data"], json!({ "a": 1 }));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for body in [&b""[..], b"{}", b"k8s\0\x0a\xff", b"k8s\0\x0b"] {
            assert!(Envelope::open(body).is_err(), "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(content: Vec<u8>) {
            let body = [PREFIX, &content].concat();
            drop(Envelope::open(&body).map(|envelope| envelope.read(schema::types().of_kind("", "v1", "Pod"))));
            let envelope = Envelope { content: &content, ..Envelope::default() };
            drop(envelope.read(schema::types().of_kind("", "v1", "Pod")));
        }
    }
}
