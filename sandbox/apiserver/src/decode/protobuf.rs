//! Protobuf, in which kubectl and other programs in Go send objects: turned into the JSON that they mean.
//!
//! # Upstream
//! `apimachinery/pkg/runtime/serializer/protobuf`, and the numbers of fields in the tags of the Go types

use super::json::Json;
use crate::schema::{self, Empty, Field, Struct, Type};

/// Every object begins so.
const PREFIX: &[u8] = b"k8s\0";
const DEEPEST: usize = 100;

/// An object, as far as all kinds are alike.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Envelope<'a> {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// The fields.
    content: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// # Errors
    ///
    /// The bytes are none of Kubernetes' objects.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, String> {
        if bytes.is_empty() {
            return Err("empty data".to_owned());
        }
        let Some(bytes) = bytes.strip_prefix(PREFIX) else {
            return Err(format!(
                "provided data does not appear to be a protobuf message, expected prefix {}",
                "[107 56 115 0]"
            ));
        };
        let mut envelope = Self::default();
        for part in Parts(bytes) {
            match part? {
                (1, Part::Bytes(identity)) => {
                    for part in Parts(identity) {
                        match part? {
                            (1, Part::Bytes(text)) => envelope.api_version = text_of(text),
                            (2, Part::Bytes(text)) => envelope.kind = text_of(text),
                            _ => {}
                        }
                    }
                }
                (2, Part::Bytes(content)) => envelope.content = content,
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
    pub(super) fn read(self, of: Option<&'static Struct>) -> Result<Json, String> {
        let mut entries = Vec::new();
        for (name, text) in [("apiVersion", self.api_version), ("kind", self.kind)] {
            if !text.is_empty() {
                entries.push((name.to_owned(), Json::String(text)));
            }
        }
        if let Some(of) = of {
            message(of, "", self.content, &mut entries, 0)?;
        }
        Ok(Json::Map(entries))
    }
}

/// Reads the fields of a message; `within` is the number of the embedded message that it is.
fn message(
    of: &'static Struct,
    within: &str,
    bytes: &[u8],
    entries: &mut Vec<(String, Json)>,
    depth: usize,
) -> Result<(), String> {
    if depth > DEEPEST {
        return Err("proto: nesting is too deep".to_owned());
    }
    for part in Parts(bytes) {
        let (number, part) = part?;
        let number = if within.is_empty() { number.to_string() } else { format!("{within}.{number}") };
        if let Some(field) = of.fields.iter().find(|field| field.number == Some(&number)) {
            add(field, part, entries, depth)?;
        } else if let Part::Bytes(bytes) = part {
            let prefix = format!("{number}.");
            if of.fields.iter().any(|field| field.number.is_some_and(|it| it.starts_with(&prefix))) {
                message(of, &number, bytes, entries, depth + 1)?;
            }
        }
    }
    Ok(())
}

/// Adds one occurrence of a field to those of an object.
fn add(field: &'static Field, part: Part<'_>, entries: &mut Vec<(String, Json)>, depth: usize) -> Result<(), String> {
    match (&field.of, part) {
        (Type::List(item), Part::Bytes(bytes)) if is_packed(item) => {
            let mut rest = bytes;
            while !rest.is_empty() {
                let number = varint(&mut rest)?;
                push(field.name, value(item, Part::Number(number), depth)?, entries);
            }
        }
        (Type::List(item), part) => push(field.name, value(item, part, depth)?, entries),
        (Type::Map(item), Part::Bytes(bytes)) => {
            let (mut key, mut content) = (String::new(), None);
            for part in Parts(bytes) {
                match part? {
                    (1, Part::Bytes(text)) => key = text_of(text),
                    (2, part) => content = Some(map_value(item, part, depth)?),
                    _ => {}
                }
            }
            let content = content.unwrap_or_else(|| zero(item));
            match entries.iter_mut().find(|(name, _)| name == field.name) {
                Some((_, Json::Map(map))) => map.push((key, content)),
                _ => entries.push((field.name.to_owned(), Json::Map(vec![(key, content)]))),
            }
        }
        (of, part) => {
            let value = value(of, part, depth)?;
            // What is no pointer is always written, and means nothing where it is empty.
            let is_empty = match &value {
                Json::Null => true,
                Json::String(text) => text.is_empty(),
                Json::Bool(value) => !value,
                Json::Number(text) => text == "0" && *of != Type::IntOrString,
                Json::List(_) | Json::Map(_) => false,
            };
            if !is_empty || (field.empty == Empty::Kept && value != Json::Null) {
                entries.retain(|(name, _)| name != field.name);
                entries.push((field.name.to_owned(), value));
            }
        }
    }
    Ok(())
}

fn is_packed(item: &Type) -> bool {
    matches!(item, Type::Int32 | Type::Int64 | Type::Bool)
}

fn push(name: &str, item: Json, entries: &mut Vec<(String, Json)>) {
    match entries.iter_mut().find(|(other, _)| other == name) {
        Some((_, Json::List(items))) => items.push(item),
        _ => entries.push((name.to_owned(), Json::List(vec![item]))),
    }
}

/// A value of a map; lists in maps are messages whose first field is the list.
fn map_value(of: &'static Type, part: Part<'_>, depth: usize) -> Result<Json, String> {
    let (Type::List(item), Part::Bytes(bytes)) = (of, &part) else { return value(of, part, depth) };
    let mut items = Vec::new();
    for part in Parts(bytes) {
        if let (1, part) = part? {
            items.push(value(item, part, depth)?);
        }
    }
    Ok(Json::List(items))
}

fn value(of: &'static Type, part: Part<'_>, depth: usize) -> Result<Json, String> {
    Ok(match (of, part) {
        (Type::Bool, Part::Number(number)) => Json::Bool(number != 0),
        (Type::Int32 | Type::Int64, Part::Number(number)) => Json::Number(number.cast_signed().to_string()),
        (Type::Number, Part::Fixed(bits)) => Json::Number(f64::from_bits(bits).to_string()),
        (Type::String, Part::Bytes(bytes)) => Json::String(text_of(bytes)),
        (Type::Bytes, Part::Bytes(bytes)) => Json::String(super::scalar::to_base64(bytes)),
        (Type::Struct(id), Part::Bytes(bytes)) => {
            let mut entries = Vec::new();
            message(schema::types().get(*id), "", bytes, &mut entries, depth + 1)?;
            Json::Map(entries)
        }
        (Type::Quantity, Part::Bytes(bytes)) => match first(bytes, 1)? {
            Some(Part::Bytes(text)) if !text.is_empty() => Json::String(text_of(text)),
            _ => Json::String("0".to_owned()),
        },
        (Type::IntOrString, Part::Bytes(bytes)) => int_or_string(bytes)?,
        (Type::Time, Part::Bytes(bytes)) => time(bytes)?,
        // JSON within protobuf.
        (Type::Any, Part::Bytes(bytes)) => match first(bytes, 1)? {
            Some(Part::Bytes(text)) if !text.is_empty() => Json::parse(text)?,
            _ => Json::Null,
        },
        (_, Part::Number(_) | Part::Fixed(_) | Part::Bytes(_)) => return Err("proto: wrong wireType".to_owned()),
    })
}

fn int_or_string(bytes: &[u8]) -> Result<Json, String> {
    let (mut is_string, mut number, mut text) = (false, 0, String::new());
    for part in Parts(bytes) {
        match part? {
            (1, Part::Number(kind)) => is_string = kind == 1,
            (2, Part::Number(value)) => number = value.cast_signed(),
            (3, Part::Bytes(value)) => text = text_of(value),
            _ => {}
        }
    }
    Ok(if is_string { Json::String(text) } else { Json::Number(number.to_string()) })
}

/// An empty message is no time at all.
fn time(bytes: &[u8]) -> Result<Json, String> {
    let (mut seconds, mut nanoseconds) = (None, 0);
    for part in Parts(bytes) {
        match part? {
            (1, Part::Number(number)) => seconds = Some(number.cast_signed()),
            (2, Part::Number(number)) => nanoseconds = i32::try_from(number).unwrap_or(0),
            _ => {}
        }
    }
    let Some(seconds) = seconds else { return Ok(Json::Null) };
    let time = jiff::Timestamp::new(seconds, nanoseconds).map_err(|_| "proto: time out of range".to_owned())?;
    // More digits than most fields hold; whoever reads the type cuts them off.
    Ok(Json::String(kcm_api::time::format_micros(time)))
}

fn zero(of: &Type) -> Json {
    match of {
        Type::String | Type::Bytes => Json::String(String::new()),
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
        | Type::Struct(_) => Json::Null,
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last part of a number.
fn first(bytes: &[u8], number: u64) -> Result<Option<Part<'_>>, String> {
    let mut found = None;
    for part in Parts(bytes) {
        let (at, part) = part?;
        if at == number {
            found = Some(part);
        }
    }
    Ok(found)
}

/// A value as it stands in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// The parts of a message with their numbers.
struct Parts<'a>(&'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = Result<(u64, Part<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let part = self.part();
        if part.is_err() {
            self.0 = &[];
        }
        Some(part)
    }
}

impl<'a> Parts<'a> {
    fn part(&mut self) -> Result<(u64, Part<'a>), String> {
        let tag = varint(&mut self.0)?;
        let part = match tag & 7 {
            0 => Part::Number(varint(&mut self.0)?),
            1 => Part::Fixed(little_endian(self.take(8)?)),
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).map_err(|_| ended())?;
                Part::Bytes(self.take(length)?)
            }
            5 => Part::Fixed(little_endian(self.take(4)?)),
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        Ok((tag >> 3, part))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(ended)?;
        self.0 = rest;
        Ok(taken)
    }
}

fn ended() -> String {
    "unexpected EOF".to_owned()
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or_else(ended)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("proto: integer overflow".to_owned())
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
        envelope.read(schema::types().of_kind(group, version, kind)).expect("the content is a message").into_value()
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
        let prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        for (body, expected) in [
            (&b""[..], "empty data"),
            (b"{}", prefix),
            (b"k8s\0\x0a\xff", "unexpected EOF"),
            (b"k8s\0\x0b", "proto: illegal wireType 3"),
        ] {
            assert_eq!(Envelope::open(body), Err(expected.to_owned()));
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
