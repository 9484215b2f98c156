//! From JSON to the value that a typed API server holds: fields are checked, and unknown ones and nulls fall away. How
//! fields that are empty are written is decided later, where an object is stored.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::json::Json;
use super::time::Precision;
use super::{go, scalar, time};
use crate::schema::{Struct, Type, Types};

/// How upstream turns JSON into a typed object; each way complains in its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `sigs.k8s.io/json`: the first wrong type is told at the end, a value that checks itself stops at once.
    Text,
    /// `runtime.DefaultUnstructuredConverter`, which strategic merge patches go through: the first error stops.
    Tree,
}

/// What was found on the way.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The first value of a wrong type.
    wrong: Option<String>,
    /// Unknown fields, and fields that repeat, in the order of the text.
    strict: Vec<String>,
}

impl Findings {
    /// The findings that only a strict reader minds.
    ///
    /// # Errors
    ///
    /// The first value of a wrong type.
    pub(super) fn strict(self) -> Result<Vec<String>, String> {
        self.wrong.map_or(Ok(self.strict), Err)
    }
}

/// A reader of one object.
pub(super) struct Typed {
    types: &'static Types,
    way: Way,
    /// Fields that the table does not know stay, without a word about them.
    keep_unknown: bool,
    findings: Findings,
    /// The path to the value, as it is told of unknown fields: `spec.containers[0]`.
    path: String,
    /// The struct and the fields above the value, as they are told of wrong types.
    place: Place,
}

#[derive(Debug, Default)]
struct Place {
    of: &'static str,
    fields: Vec<&'static str>,
}

/// A value that cannot be there, and ends the reading.
type Stop = String;

impl Typed {
    pub(super) fn new(types: &'static Types, way: Way, keep_unknown: bool) -> Self {
        Self { types, way, keep_unknown, findings: Findings::default(), path: String::new(), place: Place::default() }
    }

    /// Reads an object of a known type.
    ///
    /// # Errors
    ///
    /// A value that ends the reading; findings tell the others.
    pub(super) fn object(mut self, of: &'static Struct, json: Json) -> Result<(Value, Findings), Stop> {
        let value = self.structure(of, json)?.unwrap_or_else(|| Value::Object(Map::new()));
        if self.way == Way::Tree {
            self.findings.strict.sort();
        }
        Ok((value, self.findings))
    }

    /// Reads an object whose type is not known: only its metadata is checked.
    ///
    /// # Errors
    ///
    /// As [`Typed::object`].
    pub(super) fn untyped(mut self, metadata: &'static Struct, json: Json) -> Result<(Value, Findings), Stop> {
        let Json::Map(entries) = json else {
            self.mismatch(&json, "map[string]interface {}");
            return Ok((Value::Object(Map::new()), self.findings));
        };
        let mut object = Map::new();
        for (key, value) in entries {
            if object.contains_key(&key) {
                self.note("duplicate field", &key);
            }
            let length = self.enter(&key);
            let value = if key == "metadata" {
                // Upstream reads it apart from the rest, so what is wrong with it is told from there on.
                self.structure(metadata, value)?.unwrap_or_else(|| Value::Object(Map::new()))
            } else {
                self.note_repetitions(&value);
                value.into_value()
            };
            self.path.truncate(length);
            object.insert(key, value);
        }
        Ok((Value::Object(object), self.findings))
    }

    /// Reads a value; `None` where it is null.
    fn value(&mut self, of: &Type, go: Option<&str>, json: Json) -> Result<Option<Value>, Stop> {
        if matches!(json, Json::Null) {
            return Ok(None);
        }
        match (of, json) {
            (Type::Any, json) => Ok(Some(json.into_value())),
            (Type::Struct(id), json) => {
                let types = self.types;
                self.structure(types.get(*id), json)
            }
            (Type::List(item), Json::List(items)) => self.list(item, item_name(go), items).map(Some),
            (Type::Map(item), Json::Map(entries)) => self.map(item, value_name(go), entries).map(Some),
            (Type::Time, json) => self.time(go, &json).map(Some),
            (Type::Quantity, json) => quantity(&json).map(Some),
            (Type::IntOrString, json) => self.int_or_string(json).map(Some),
            (Type::Bytes, Json::String(text)) => self.bytes(&text),
            (Type::String, Json::String(text)) => Ok(Some(Value::String(text))),
            (Type::Bool, Json::Bool(value)) => Ok(Some(Value::Bool(value))),
            (Type::Int32 | Type::Int64 | Type::Number, Json::Number(text)) => self.number(of, go, text),
            (
                Type::String
                | Type::Int32
                | Type::Int64
                | Type::Number
                | Type::Bool
                | Type::Bytes
                | Type::List(_)
                | Type::Map(_),
                json,
            ) => {
                self.wrong_type(of, go, &json)?;
                Ok(None)
            }
        }
    }

    fn structure(&mut self, of: &'static Struct, json: Json) -> Result<Option<Value>, Stop> {
        let entries = match json {
            Json::Null => return Ok(None),
            Json::Map(entries) => entries,
            Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::List(_) => {
                match self.way {
                    Way::Text => self.mismatch(&json, &name_of(of)),
                    Way::Tree => return Err(format!("cannot restore struct from: {}", kind_in_tree(&json))),
                }
                return Ok(None);
            }
        };
        let mut object = Map::new();
        for (key, value) in entries {
            let Some(field) = of.field(&key) else {
                if self.keep_unknown {
                    object.insert(key, value.into_value());
                } else {
                    self.note("unknown field", &key);
                }
                continue;
            };
            if object.contains_key(&key) {
                self.note("duplicate field", &key);
            }
            let length = self.enter(&key);
            let depth = self.place.fields.len();
            self.place.fields.extend(field.via);
            self.place.fields.push(field.name);
            let above = std::mem::replace(&mut self.place.of, short_name(of.name));
            let read = self.value(&field.of, field.go, value);
            self.place.of = above;
            self.place.fields.truncate(depth);
            self.path.truncate(length);
            object.insert(key, read?.unwrap_or_default());
        }
        object.retain(|_, value| !value.is_null());
        Ok(Some(Value::Object(object)))
    }

    fn list(&mut self, item: &Type, go: Option<&str>, items: Vec<Json>) -> Result<Value, Stop> {
        let mut list = Vec::with_capacity(items.len());
        for (at, json) in items.into_iter().enumerate() {
            let length = self.enter_item(at);
            let value = self.value(item, go, json);
            self.path.truncate(length);
            list.push(value?.unwrap_or_else(|| zero(item)));
        }
        Ok(Value::Array(list))
    }

    fn map(&mut self, item: &Type, go: Option<&str>, entries: Vec<(String, Json)>) -> Result<Value, Stop> {
        let mut map = Map::new();
        for (key, json) in entries {
            if map.contains_key(&key) {
                self.note("duplicate field", &key);
            }
            let length = self.enter(&key);
            let value = self.value(item, go, json);
            self.path.truncate(length);
            map.insert(key, value?.unwrap_or_else(|| zero(item)));
        }
        Ok(Value::Object(map))
    }

    fn number(&mut self, of: &Type, go: Option<&str>, text: String) -> Result<Option<Value>, Stop> {
        let whole = text.parse::<i64>().ok();
        let value = match (of, self.way) {
            (Type::Number, _) => text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number),
            (_, Way::Text) => {
                whole.filter(|number| matches!(of, Type::Int64) || i32::try_from(*number).is_ok()).map(Value::from)
            }
            // A tree holds whole numbers of 64 bits, which Go cuts down to fewer without a word.
            (_, Way::Tree) => whole.or_else(|| integral(&text)).map(|number| wrap(of, number)),
        };
        if value.is_none() {
            let json = Json::Number(text);
            self.wrong_type(of, go, &json)?;
        }
        Ok(value)
    }

    fn time(&self, go: Option<&str>, json: &Json) -> Result<Value, Stop> {
        let Json::String(text) = json else { return Err(self.complaint(json.word(), "string")) };
        let precision = if go.is_some_and(|name| name.ends_with("MicroTime")) {
            Precision::Microseconds
        } else {
            Precision::Seconds
        };
        time::normalize(text, precision).map(Value::String)
    }

    fn int_or_string(&self, json: Json) -> Result<Value, Stop> {
        match json {
            Json::String(text) => Ok(Value::String(text)),
            Json::Number(text) => match text.parse::<i32>() {
                Ok(number) => Ok(number.into()),
                Err(_) => Err(self.complaint(&format!("number {text}"), "int32")),
            },
            Json::Null | Json::Bool(_) | Json::List(_) | Json::Map(_) => Err(self.complaint(json.word(), "int32")),
        }
    }

    fn bytes(&mut self, text: &str) -> Result<Option<Value>, Stop> {
        match (scalar::base64(text), self.way) {
            (Ok(text), _) => Ok(Some(Value::String(text))),
            (Err(why), Way::Text) => {
                self.findings.wrong.get_or_insert(why);
                Ok(None)
            }
            (Err(why), Way::Tree) => Err(format!("error decoding from json: {why}")),
        }
    }

    fn wrong_type(&mut self, of: &Type, go: Option<&str>, json: &Json) -> Result<(), Stop> {
        let name = go.map_or_else(|| go_name(of, self.types), str::to_owned);
        if self.way == Way::Tree {
            return Err(complaint_in_tree(of, &name, json));
        }
        self.mismatch(json, &name);
        Ok(())
    }

    /// Notes a value of a wrong type.
    fn mismatch(&mut self, json: &Json, name: &str) {
        let what = match json {
            Json::Number(text) if matches!(name, "int32" | "int64" | "float64") => format!("number {text}"),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::List(_) | Json::Map(_) => {
                json.word().to_owned()
            }
        };
        let complaint = self.complaint(&what, name);
        self.findings.wrong.get_or_insert(complaint);
    }

    fn complaint(&self, what: &str, name: &str) -> String {
        if self.way == Way::Tree || self.place.fields.is_empty() {
            return format!("json: cannot unmarshal {what} into Go value of type {name}");
        }
        let fields = self.place.fields.join(".");
        format!("json: cannot unmarshal {what} into Go struct field {}.{fields} of type {name}", self.place.of)
    }

    /// Appends a key to the path; returns how long it was.
    fn enter(&mut self, key: &str) -> usize {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        length
    }

    /// Appends the position of an item to the path; returns how long it was.
    fn enter_item(&mut self, at: usize) -> usize {
        let length = self.path.len();
        let position = format!("[{at}]");
        self.path.push_str(&position);
        length
    }

    fn note(&mut self, what: &str, key: &str) {
        // As many as upstream tells.
        if self.findings.strict.len() >= 100 {
            return;
        }
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        let finding = format!("{what} {}", go::quote(&path));
        if !self.findings.strict.contains(&finding) {
            self.findings.strict.push(finding);
        }
    }

    pub(super) fn into_findings(self) -> Findings {
        self.findings
    }

    /// Notes keys that repeat anywhere in a value whose type is not known.
    pub(super) fn note_repetitions(&mut self, json: &Json) {
        match json {
            Json::Map(entries) => {
                let mut seen = BTreeSet::new();
                for (key, value) in entries {
                    if !seen.insert(key) {
                        self.note("duplicate field", key);
                    }
                    let length = self.enter(key);
                    self.note_repetitions(value);
                    self.path.truncate(length);
                }
            }
            Json::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    let length = self.enter_item(at);
                    self.note_repetitions(item);
                    self.path.truncate(length);
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }
}

fn quantity(json: &Json) -> Result<Value, Stop> {
    let text = match json {
        Json::Number(text) | Json::String(text) => text.as_str(),
        // Nothing that a quantity could be.
        Json::Null | Json::Bool(_) | Json::List(_) | Json::Map(_) => "{}",
    };
    scalar::quantity(text).map(|text| Value::String(text.to_owned()))
}

/// What an item is that is null.
fn zero(of: &Type) -> Value {
    match of {
        Type::String | Type::Bytes => "".into(),
        Type::Int32 | Type::Int64 | Type::Number | Type::IntOrString => 0.into(),
        Type::Bool => false.into(),
        Type::Quantity => "0".into(),
        Type::Time | Type::Any | Type::List(_) | Type::Map(_) => Value::Null,
        Type::Struct(_) => Value::Object(Map::new()),
    }
}

/// The type of the items of a list, where the type of the list names it.
fn item_name(list: Option<&str>) -> Option<&str> {
    list?.strip_prefix("[]")
}

/// The type of the values of a map, where the type of the map names it.
fn value_name(map: Option<&str>) -> Option<&str> {
    map?.strip_prefix("map[")?.split_once(']').map(|(_, value)| value)
}

fn short_name(name: &'static str) -> &'static str {
    name.rsplit('.').next().unwrap_or(name)
}

/// As Go prints the type of a struct: its package's name and its own.
fn name_of(of: &Struct) -> String {
    let mut parts = of.name.rsplit('.');
    let (name, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("{package}.{name}")
}

fn go_name(of: &Type, types: &Types) -> String {
    match of {
        Type::String => "string".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::Number => "float64".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Bytes => "[]uint8".to_owned(),
        Type::Time => "v1.Time".to_owned(),
        Type::Quantity => "resource.Quantity".to_owned(),
        Type::IntOrString => "intstr.IntOrString".to_owned(),
        Type::Any => "interface {}".to_owned(),
        Type::List(item) => format!("[]{}", go_name(item, types)),
        Type::Map(value) => format!("map[string]{}", go_name(value, types)),
        Type::Struct(id) => name_of(types.get(*id)),
    }
}

/// A whole number that is spelled as a fraction.
fn integral(text: &str) -> Option<i64> {
    let number = text.parse::<f64>().ok().filter(|number| number.fract() == 0.0)?;
    #[expect(clippy::cast_possible_truncation, reason = "what does not fit is cut off, as Go cuts it off")]
    let whole = number as i64;
    Some(whole)
}

fn wrap(of: &Type, number: i64) -> Value {
    let [a, b, c, d, ..] = number.to_le_bytes();
    if *of == Type::Int32 { i32::from_le_bytes([a, b, c, d]).into() } else { number.into() }
}

/// Go's kind of what JSON is decoded to where no type is known.
fn kind_in_tree(json: &Json) -> &'static str {
    match json {
        Json::Null => "interface",
        Json::Bool(_) => "bool",
        Json::Number(text) if text.parse::<i64>().is_ok() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::List(_) => "slice",
        Json::Map(_) => "map",
    }
}

fn complaint_in_tree(of: &Type, name: &str, json: &Json) -> String {
    let from = kind_in_tree(json);
    let kind = match of {
        Type::List(_) | Type::Bytes => return format!("cannot restore slice from {from}"),
        Type::Map(_) => return format!("cannot restore map from {from}"),
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Number => "float64",
        Type::Bool => "bool",
        Type::String | Type::Time | Type::Quantity | Type::IntOrString | Type::Any | Type::Struct(_) => "string",
    };
    // Go converts between these, and JSON must not.
    match (kind, from) {
        ("string", "int64") | ("int32" | "int64", "float64") => format!("cannot convert {from} to {name}"),
        _ => format!("unrecognized type: {kind}"),
    }
}
