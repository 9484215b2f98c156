//! Whole objects as JSON, for kinds that a controller updates whole.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::decode::Text;
use crate::decode_error::DecodeError;
use crate::resource::Resource;

/// One object as compact JSON without `metadata.managedFields`, edited in place by path.
///
/// Order, number forms, escapes and repeated keys stay as the API server sent them, byte for byte. Only whitespace
/// between tokens is removed. Therefore an object keeps all fields when it is read, edited and updated, even unknown
/// fields. The API server keeps managed fields itself when an update has none.
///
/// # Guarantees
/// An edit changes the value at its path and nothing else. If a key occurs twice in one object, the last member counts,
/// as for the API server; [`remove`](Self::remove) removes all of them.
///
/// # Examples
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let json = r#"{"spec": {"weight": 1.50}, "metadata": {"name": "web", "managedFields": []}}"#;
/// let mut document = kcm_api::Document::parse(json)?;
/// document.set(&["status", "replicas"], &3)?;
/// assert_eq!(document.as_str(), r#"{"spec":{"weight":1.50},"metadata":{"name":"web"},"status":{"replicas":3}}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Document(Box<str>);

/// A failed edit; the document is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The path names no member.
    #[error("cannot edit a document at an empty path")]
    EmptyPath,
    /// A value of the path is neither an object nor `null`.
    #[error("cannot edit a document inside of `{path}`, which is not an object")]
    NotAnObject {
        /// Path of the value that is not an object, such as `spec.template`.
        path: String,
    },
    /// An edit needs a list, and the value is another type.
    #[error("cannot read `{path}` of a document as a list")]
    NotAList {
        /// Path of the value that is not a list, such as `status.conditions`.
        path: String,
    },
    /// The value cannot be written as JSON.
    #[error("cannot write the value of `{path}` as JSON")]
    Value {
        /// Path at which the value was to be set.
        path: String,
        /// The error from serde.
        source: serde_json::Error,
    },
}

impl Document {
    /// Reads one object.
    ///
    /// # Errors
    /// Text that is not one JSON object, or metadata that is neither an object nor `null`.
    pub fn parse(json: &str) -> Result<Self, DecodeError> {
        let mut text = String::with_capacity(json.len());
        let mut deserializer = serde_json::Deserializer::from_str(json);
        Copy { text: &mut text, level: Level::Object }.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(Self(text.into_boxed_str()))
    }

    /// An object of that kind with nothing in it: `apiVersion` and `kind`; the rest is set.
    #[must_use]
    pub fn of_kind(resource: &Resource) -> Self {
        let (api_version, kind) = (quote(&resource.api_version()), quote(&resource.kind));
        Self(format!(r#"{{"apiVersion":{api_version},"kind":{kind}}}"#).into_boxed_str())
    }

    /// Returns the whole document as JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the JSON at `path`, or `None` if a name of the path does not exist.
    #[must_use]
    pub fn get(&self, path: &[&str]) -> Option<&str> {
        path.iter().try_fold(&*self.0, |object, name| Some(member(object, name)?.get()))
    }

    /// Returns the JSON at `path`, for use within a value that is serialized.
    #[must_use]
    pub fn raw(&self, path: &[&str]) -> Option<&RawValue> {
        serde_json::from_str(self.get(path)?).ok()
    }

    /// Returns the items of the list at `path`, unchanged. Returns no items if the list is absent or `null`.
    ///
    /// To change a list, read it with this and write it with [`set`](Self::set): other items keep all their fields.
    pub fn items(&self, path: &[&str]) -> Result<Vec<&RawValue>, EditError> {
        let Some(list) = self.get(path) else { return Ok(Vec::new()) };
        let items: Option<_> = serde_json::from_str(list).map_err(|_| EditError::NotAList { path: path.join(".") })?;
        Ok(items.unwrap_or_default())
    }

    /// Returns all annotations, sorted by key. Returns none if they are not a map of strings.
    ///
    /// Reads the whole document. A controller that needs several annotations should call this once.
    #[must_use]
    pub fn annotations(&self) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
        let annotations: Option<BTreeMap<Text<'_>, Option<Text<'_>>>> =
            self.get(&["metadata", "annotations"]).and_then(|json| serde_json::from_str(json).ok()).flatten();
        annotations.unwrap_or_default().into_iter().map(|(key, value)| (key.0, value.unwrap_or_default().0)).collect()
    }

    /// Sets the value at `path`. Replaces the present value, or appends a member to the object.
    ///
    /// Objects of the path that are missing or `null` are created.
    pub fn set(&mut self, path: &[&str], value: &(impl Serialize + ?Sized)) -> Result<(), EditError> {
        let value = serde_json::to_string(value).map_err(|source| EditError::Value { path: path.join("."), source })?;
        self.edit(path, Some(&value))
    }

    /// Removes the member at `path`. Does nothing if it does not exist.
    pub fn remove(&mut self, path: &[&str]) -> Result<(), EditError> {
        if self.get(path).is_some() { self.edit(path, None) } else { Ok(()) }
    }

    fn edit(&mut self, path: &[&str], value: Option<&str>) -> Result<(), EditError> {
        let mut text = String::with_capacity(self.0.len() + value.map_or(0, str::len));
        write_edited(&mut text, &self.0, path, 0, value)?;
        self.0 = text.into_boxed_str();
        Ok(())
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Document {
    /// Writes the text unchanged; only for `serde_json`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Object,
    Metadata,
}

/// Copies an object to `text` while it is parsed.
struct Copy<'t> {
    text: &'t mut String,
    level: Level,
}

impl<'de> DeserializeSeed<'de> for Copy<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Copy<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        if self.level == Level::Object {
            return Err(E::invalid_type(serde::de::Unexpected::Unit, &self));
        }
        self.text.push_str("null");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { text, level } = self;
        let mut object = ObjectWriter::begin(text);
        while let Some(key) = map.next_key::<&RawValue>()? {
            if level == Level::Metadata && is_named(key, "managedFields") {
                map.next_value::<IgnoredAny>()?;
            } else if level == Level::Object && is_named(key, "metadata") {
                let text = object.member(key.get());
                map.next_value_seed(Copy { text, level: Level::Metadata })?;
            } else {
                compact(map.next_value::<&RawValue>()?.get(), object.member(key.get()));
            }
        }
        object.end();
        Ok(())
    }
}

pub(crate) struct ObjectWriter<'t> {
    text: &'t mut String,
    is_empty: bool,
}

impl<'t> ObjectWriter<'t> {
    pub(crate) fn begin(text: &'t mut String) -> Self {
        text.push('{');
        Self { text, is_empty: true }
    }

    /// Writes the key and hands out the text for the value.
    pub(crate) fn member(&mut self, key: &str) -> &mut String {
        if !self.is_empty {
            self.text.push(',');
        }
        self.is_empty = false;
        self.text.push_str(key);
        self.text.push(':');
        self.text
    }

    pub(crate) fn end(self) {
        self.text.push('}');
    }
}

/// Copies valid JSON without the whitespace between its tokens.
pub(crate) fn compact(json: &str, text: &mut String) {
    let bytes = json.as_bytes();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b' ' | b'\t' | b'\n' | b'\r' => {
                text.push_str(&json[copied..at]);
                at += 1;
                copied = at;
            }
            _ => at += 1,
        }
    }
    text.push_str(&json[copied..]);
}

/// The index after the closing quote of the string that opens at `open`.
fn end_of_string(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns `true` if the key, with its quotes and escapes, means this name.
fn is_named(key: &RawValue, name: &str) -> bool {
    let key = key.get();
    if key.contains('\\') {
        serde_json::from_str::<String>(key).is_ok_and(|key| key == name)
    } else {
        key.trim_matches('"') == name
    }
}

/// The members of an object in their order, keys as written; `None` for any other value.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(&'de RawValue, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Collect).map(Self)
    }
}

impl<'a> Members<'a> {
    fn of(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    fn last(&self, name: &str) -> Option<usize> {
        self.0.iter().rposition(|(key, _)| is_named(key, name))
    }
}

fn member<'a>(object: &'a str, name: &str) -> Option<&'a RawValue> {
    let members = Members::of(object)?;
    members.last(name).map(|at| members.0[at].1)
}

/// Writes `current`, found at the first `depth` names of `path`, with `value` at the end of that path, or without it.
fn write_edited(
    text: &mut String,
    current: &str,
    path: &[&str],
    depth: usize,
    value: Option<&str>,
) -> Result<(), EditError> {
    let Some((name, rest)) = path[depth..].split_first() else { return Err(EditError::EmptyPath) };
    let members = match Members::of(current) {
        Some(members) => members,
        None if current == "null" => Members(Vec::new()),
        None => return Err(EditError::NotAnObject { path: path[..depth].join(".") }),
    };
    let target = members.last(name);
    let mut object = ObjectWriter::begin(text);
    for (at, (key, old)) in members.0.iter().enumerate() {
        let is_target = target == Some(at);
        match value {
            None if rest.is_empty() && is_named(key, name) => {}
            Some(value) if is_target && rest.is_empty() => object.member(key.get()).push_str(value),
            None | Some(_) if is_target => {
                write_edited(object.member(key.get()), old.get(), path, depth + 1, value)?;
            }
            None | Some(_) => object.member(key.get()).push_str(old.get()),
        }
    }
    if let (None, Some(value)) = (target, value) {
        let text = object.member(&quote(name));
        for name in rest {
            text.push('{');
            text.push_str(&quote(name));
            text.push(':');
        }
        text.push_str(value);
        text.extend(rest.iter().map(|_| '}'));
    }
    object.end();
    Ok(())
}

pub(crate) fn quote(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}
