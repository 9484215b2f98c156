//! Objects without what differs between two equal runs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use kcm_sandbox_apiserver::{EVENTS, ObjectKey, Resource};
use serde_json::{Map, Value, json};

use crate::history::Objects;

/// An object without uid, version, times, addresses and generated names.
#[derive(Debug, Clone, PartialEq)]
pub struct Masked {
    /// The resource of the object.
    pub resource: Resource,
    /// The key of the object in this run.
    pub key: ObjectKey,
    /// Resource, namespace and name. The generated part of the name is `*`.
    pub label: String,
    /// The content. A reference to another object is `REFERENCE` and the position of that object.
    pub content: Value,
    /// The positions of the objects that it refers to, ascending, each once.
    pub refers_to: Vec<usize>,
}

/// The first characters of a string that refers to an object by its name or uid. No valid name has them.
pub(super) const REFERENCE: &str = "@";

/// Fields that are removed wherever they are.
const REMOVED: &[&str] =
    &["creationTimestamp", "generateName", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// Fields with a number that the API server chooses.
const CHOSEN: &[&str] = &["nodePort", "healthCheckNodePort"];

/// Masks all objects but events, in the order of their resources and keys.
#[must_use]
pub fn masked(objects: &Objects) -> Vec<Masked> {
    let objects: Vec<_> = objects
        .iter()
        .filter(|(resource, _)| **resource != EVENTS)
        .flat_map(|(resource, of_resource)| of_resource.iter().map(move |(key, object)| (resource, key, object)))
        .collect();
    let references = References::of(&objects);
    let mask = |(resource, key, object): &(&Resource, &ObjectKey, &Arc<Value>)| {
        let mut masking = Masking { references: &references, namespace: key.namespace(), found: Vec::new() };
        let generation = object["metadata"].get("generation").cloned();
        let content = masking.value(object, generation.as_ref(), Part::Object);
        let mut refers_to = masking.found;
        refers_to.sort_unstable();
        refers_to.dedup();
        let label = label(resource, key, object);
        Masked { resource: (*resource).clone(), key: (*key).clone(), label, content, refers_to }
    };
    objects.iter().map(mask).collect()
}

/// Returns the masked objects as sorted lines, in which a reference is the label of its object, to compare two states.
#[must_use]
pub fn normal_form(objects: &Objects) -> Vec<String> {
    let objects = masked(objects);
    let mut lines: Vec<String> =
        objects.iter().map(|object| format!("{} {}", object.label, readable(&object.content, &objects))).collect();
    lines.sort();
    lines
}

fn readable(value: &Value, objects: &[Masked]) -> Value {
    let text = |text: &str| match referred(text) {
        Some(at) => format!("<{}>", objects[at].label),
        None => text.to_owned(),
    };
    match value {
        Value::String(string) => text(string).into(),
        Value::Array(items) => items.iter().map(|item| readable(item, objects)).collect(),
        Value::Object(fields) => {
            // Two references may have one label, so the entries become a list.
            let has_references = fields.keys().any(|key| referred(key).is_some());
            let entries = fields.iter().map(|(key, value)| (text(key), readable(value, objects)));
            if has_references {
                let mut entries: Vec<String> = entries.map(|(key, value)| format!("{key}: {value}")).collect();
                entries.sort();
                json!(entries)
            } else {
                Value::Object(entries.collect())
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The position of the object that a masked string refers to.
pub(super) fn referred(text: &str) -> Option<usize> {
    text.strip_prefix(REFERENCE)?.parse().ok()
}

/// The name of an object with `*` instead of what the server or a controller generated.
fn label(resource: &Resource, key: &ObjectKey, object: &Value) -> String {
    let namespace = key.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    match generated_from(key, object) {
        Some(base) => format!("{resource} {namespace}{base}*"),
        None => format!("{resource} {namespace}{}", key.name()),
    }
}

/// The `generateName` from which the name of an object was generated.
fn generated_from<'a>(key: &ObjectKey, object: &'a Value) -> Option<&'a str> {
    let base = object["metadata"]["generateName"].as_str()?;
    // A name that is too long keeps only a part of the base. The ordinal of a stateful set's pod is no generated suffix.
    let suffix = key.name().get(key.name().len().checked_sub(SUFFIX)?..)?;
    let is_generated = suffix.bytes().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte));
    let stem = &key.name()[..key.name().len() - SUFFIX];
    (is_generated && base.starts_with(stem) && !stem.is_empty()).then_some(base)
}

/// Number of characters that a generated name has beyond its base.
const SUFFIX: usize = 5;

/// The names and uids by which objects are referred to.
struct References {
    by_uid: BTreeMap<String, usize>,
    /// Generated names. Other names stay, as they are the same in every run.
    by_name: BTreeMap<(Option<String>, String), usize>,
}

impl References {
    fn of(objects: &[(&Resource, &ObjectKey, &Arc<Value>)]) -> Self {
        let (mut by_uid, mut by_name) = (BTreeMap::new(), BTreeMap::new());
        for (at, (_, key, object)) in objects.iter().enumerate() {
            if let Some(uid) = object["metadata"]["uid"].as_str() {
                by_uid.insert(uid.to_owned(), at);
            }
            if generated_from(key, object).is_some() {
                by_name.insert((key.namespace().map(str::to_owned), key.name().to_owned()), at);
            }
        }
        Self { by_uid, by_name }
    }
}

/// The part of an object in which a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Object,
    Metadata,
    Status,
    Other,
}

impl Part {
    fn field(self, name: &str) -> Self {
        match (self, name) {
            (Self::Object, "metadata") => Self::Metadata,
            (Self::Object, "status") | (Self::Status, _) => Self::Status,
            (Self::Object | Self::Metadata | Self::Other, _) => Self::Other,
        }
    }
}

struct Masking<'a> {
    references: &'a References,
    namespace: Option<&'a str>,
    found: Vec<usize>,
}

impl Masking<'_> {
    fn value(&mut self, value: &Value, generation: Option<&Value>, part: Part) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => {
                items.iter().map(|item| self.value(item, generation, part)).collect::<Vec<_>>().into()
            }
            Value::Object(fields) => self.fields(fields, generation, part),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>, generation: Option<&Value>, part: Part) -> Value {
        let is_reference = fields.get("uid").is_some() && fields.get("kind").is_some();
        let mut masked = Map::new();
        for (name, value) in fields {
            let shown = match name.as_str() {
                // The uid of a reference says if the object is the one of that name, or an earlier one.
                "uid" if is_reference => value.as_str().map_or(Value::Null, |uid| self.text(uid).into()),
                removed if REMOVED.contains(&removed) => continue,
                // Texts carry names and numbers that reason and status say as well.
                "message" if part == Part::Status => continue,
                // The label has it.
                "name" if part == Part::Metadata => continue,
                "deletionTimestamp" => json!(!value.is_null()),
                "observedGeneration" => json!(Some(value) == generation),
                chosen if CHOSEN.contains(&chosen) => json!(value.as_u64().is_some_and(|number| number != 0)),
                _ => self.value(value, generation, part.field(name)),
            };
            masked.insert(self.text(name), shown);
        }
        Value::Object(masked)
    }

    fn text(&mut self, text: &str) -> String {
        let named = |namespace: Option<&str>| {
            self.references.by_name.get(&(namespace.map(str::to_owned), text.to_owned())).copied()
        };
        let referred =
            self.references.by_uid.get(text).copied().or_else(|| named(self.namespace)).or_else(|| named(None));
        if let Some(at) = referred {
            self.found.push(at);
            return format!("{REFERENCE}{at}");
        }
        if is_uid(text) {
            return "<uid of no object>".to_owned();
        }
        if text.parse::<IpAddr>().is_ok() {
            return "<address>".to_owned();
        }
        // Every time of the API has this form.
        if text.len() >= "2026-01-02T03:04:05Z".len() && text.parse::<jiff::Timestamp>().is_ok() {
            return "<time>".to_owned();
        }
        text.to_owned()
    }
}

fn is_uid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
