//! A pod template as go-spew prints its Go type.
//!
//! `(v1.PodTemplateSpec){ObjectMeta:(v1.ObjectMeta){Name:(string) … Spec:(v1.PodSpec){Volumes:([]v1.Volume)<nil> …}}`

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::quantity;

/// The types that a pod template consists of, printed by `e2e/template-hashes` from `k8s.io/api` v0.37.2.
///
/// A row is the name of a type and its underlying type, or `struct` and its fields: name, name in JSON, type.
const TYPES: &str = include_str!("types.tsv");

const ZERO_TIME: &str = "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}";

/// Prints a pod template. Absent for one that the types cannot hold.
///
/// An empty list or map is printed as nil: upstream reads objects as protobuf, which cannot tell them apart.
pub(super) fn print(template: &Value) -> Option<String> {
    let rows = TYPES.lines().filter_map(|row| row.split_once('\t')).collect();
    let mut printer = Printer { rows, printed: String::new() };
    printer.typed("v1.PodTemplateSpec", Some(template))?;
    Some(printer.printed)
}

struct Printer {
    /// The rows of the types by name.
    rows: HashMap<&'static str, &'static str>,
    printed: String,
}

impl Printer {
    /// A value after its type in parentheses.
    fn typed(&mut self, go_type: &'static str, value: Option<&Value>) -> Option<()> {
        self.push(&["(", go_type, ")"]);
        match go_type.strip_prefix('*') {
            Some(pointee) if value.is_some() => self.value(pointee, value)?,
            Some(_) => self.push(&["<nil>"]),
            None => self.value(go_type, value)?,
        }
        Some(())
    }

    /// A value without its type. An absent one is the zero value.
    fn value(&mut self, go_type: &'static str, value: Option<&Value>) -> Option<()> {
        match go_type {
            "string" => self.push(&[value.map_or(Some(""), Value::as_str)?]),
            "bool" => self.push(&[if value.map_or(Some(false), Value::as_bool)? { "true" } else { "false" }]),
            "int32" | "int64" => self.integer(value)?,
            "resource.Quantity" => self.push(&[&quantity::print(value)?]),
            "intstr.IntOrString" => self.integer_or_string(value)?,
            "v1.Time" if value.is_none() => self.push(&[ZERO_TIME]),
            _ => self.compound(go_type, value)?,
        }
        Some(())
    }

    /// A list, a map, or a value of a named type.
    fn compound(&mut self, go_type: &'static str, value: Option<&Value>) -> Option<()> {
        if let Some(element) = go_type.strip_prefix("[]") {
            return self.list(element, value.map_or(Some(&[][..]), |list| list.as_array().map(Vec::as_slice))?);
        }
        if let Some((_, element)) = go_type.strip_prefix("map[").and_then(|map| map.split_once(']')) {
            return self.map(element, value.map_or(Some(None), |map| map.as_object().map(Some))?);
        }
        // `v1.Time` and `v1.ManagedFieldsEntry` have no row, and no template has values of them.
        let row = *self.rows.get(go_type)?;
        match row.strip_prefix("struct") {
            Some(fields) => self.structure(fields, value.map_or(Some(None), |it| it.as_object().map(Some))?),
            None => self.value(row, value),
        }
    }

    fn structure(&mut self, fields: &'static str, object: Option<&Map<String, Value>>) -> Option<()> {
        self.push(&["{"]);
        for (at, field) in fields.split('\t').filter(|field| !field.is_empty()).enumerate() {
            let (name, rest) = field.split_once(':')?;
            let (json, go_type) = rest.split_once(':')?;
            self.push(&[if at > 0 { " " } else { "" }, name, ":"]);
            if json.is_empty() {
                // An embedded struct: its fields are those of the object.
                self.push(&["(", go_type, ")"]);
                self.structure(self.rows.get(go_type)?.strip_prefix("struct")?, object)?;
            } else {
                self.typed(go_type, object.and_then(|object| object.get(json)).filter(|value| !value.is_null()))?;
            }
        }
        self.push(&["}"]);
        Some(())
    }

    fn list(&mut self, element: &'static str, items: &[Value]) -> Option<()> {
        if items.is_empty() {
            self.push(&["<nil>"]);
            return Some(());
        }
        for (at, item) in items.iter().enumerate() {
            self.push(&[if at > 0 { " " } else { "[" }]);
            self.value(element, Some(item))?;
        }
        self.push(&["]"]);
        Some(())
    }

    /// A map, whose keys are strings.
    fn map(&mut self, element: &'static str, members: Option<&Map<String, Value>>) -> Option<()> {
        let mut members: Vec<_> = members.into_iter().flatten().collect();
        if members.is_empty() {
            self.push(&["<nil>"]);
            return Some(());
        }
        members.sort_unstable_by_key(|(key, _)| *key);
        for (at, (key, value)) in members.into_iter().enumerate() {
            self.push(&[if at > 0 { " " } else { "map[" }, key, ":"]);
            self.value(element, Some(value))?;
        }
        self.push(&["]"]);
        Some(())
    }

    fn integer(&mut self, value: Option<&Value>) -> Option<()> {
        let number = value.map_or(Some(0), Value::as_i64)?;
        self.push(&[&number.to_string()]);
        Some(())
    }

    fn integer_or_string(&mut self, value: Option<&Value>) -> Option<()> {
        if let Some(Value::String(text)) = value {
            self.push(&["{Type:(intstr.Type)1 IntVal:(int32)0 StrVal:(string)", text, "}"]);
            return Some(());
        }
        self.push(&["{Type:(intstr.Type)0 IntVal:(int32)"]);
        self.integer(value)?;
        self.push(&[" StrVal:(string)}"]);
        Some(())
    }

    fn push(&mut self, parts: &[&str]) {
        self.printed.extend(parts.iter().copied());
    }
}
