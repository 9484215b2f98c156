//! Validation of applied configurations against their type: unknown fields, wrong types, invalid items. Pure.
//!
//! # Upstream
//! `structured-merge-diff/typed/validate.go`

use std::collections::BTreeSet;

use serde_json::Value;

use super::element;
use super::shape::Shape;
use crate::schema::{ListKind, Struct, Type, types};

/// Returns all errors with upstream's messages; of custom resources only the metadata is checked.
pub(crate) fn complaints(shape: Shape, object: &Value) -> Option<String> {
    let mut complaints = Vec::new();
    match shape {
        Shape::Struct(of) => check_struct(of, object, "", &mut complaints),
        Shape::Custom => {
            if let (Shape::Struct(of), _) = shape.field("metadata") {
                check_struct(of, object.get("metadata").unwrap_or(&Value::Null), ".metadata", &mut complaints);
            }
        }
        Shape::Leaf | Shape::Map(_) | Shape::Set | Shape::ByKey(..) | Shape::Deduced => {}
    }
    match complaints.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn complain(complaints: &mut Vec<String>, path: &str, what: &str) {
    complaints.push(if path.is_empty() { what.to_owned() } else { format!("{path}: {what}") });
}

fn check_struct(of: &'static Struct, value: &Value, path: &str, complaints: &mut Vec<String>) {
    let Some(map) = map_of(value, path, complaints) else { return };
    for (name, value) in map {
        let path = format!("{path}.{name}");
        let Some(field) = of.field(name) else {
            // Upstream stops descending here.
            return complain(complaints, &path, "field not declared in schema");
        };
        match (&field.of, &field.list) {
            (Type::List(item), ListKind::Set) => check_items(Shape::Set, item, value, &path, complaints),
            (Type::List(item), ListKind::Map(keys)) => {
                check_items(Shape::ByKey(keys, item), item, value, &path, complaints);
            }
            (of, _) => check(of, value, &path, complaints),
        }
    }
}

fn check(of: &'static Type, value: &Value, path: &str, complaints: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    match of {
        Type::Struct(id) => check_struct(types().get(*id), value, path, complaints),
        Type::Map(of) => {
            for (name, value) in map_of(value, path, complaints).into_iter().flatten() {
                check(of, value, &format!("{path}.{name}"), complaints);
            }
        }
        Type::List(item) => check_items(Shape::Leaf, item, value, path, complaints),
        Type::String | Type::Bytes if !value.is_string() => {
            complain(complaints, path, &format!("expected string, got {}", shown_as_source(value)));
        }
        Type::Int32 | Type::Int64 | Type::Number if !value.is_number() => {
            complain(complaints, path, &format!("expected numeric (int or float), got {}", go_type(value)));
        }
        Type::Bool if !value.is_boolean() => {
            complain(complaints, path, &format!("expected boolean, got {}", shown(value)));
        }
        Type::String
        | Type::Bytes
        | Type::Int32
        | Type::Int64
        | Type::Number
        | Type::Bool
        | Type::Time
        | Type::Quantity
        | Type::IntOrString
        | Type::Any => {}
    }
}

fn check_items(shape: Shape, of: &'static Type, value: &Value, path: &str, complaints: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    let Some(items) = value.as_array() else {
        return complain(complaints, path, &format!("expected list, got {}", shown(value)));
    };
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let step = if let Shape::Leaf = shape {
            format!("[{at}]")
        } else {
            let Some(element) = shape.element(item) else {
                return complain(complaints, path, &format!("element {at}: {}", why_without_name(shape, item)));
            };
            let step = element::display_one(&element);
            if !seen.insert(element) {
                complain(complaints, path, &format!("duplicate entries for key {step}"));
            }
            step
        };
        check(of, item, &format!("{path}{step}"), complaints);
    }
}

fn why_without_name(shape: Shape, item: &Value) -> String {
    let why = if let Shape::ByKey(keys, _) = shape {
        if item.is_object() {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            return format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                keys.join(" ")
            );
        }
        if item.is_null() {
            "associative list with keys may not have a null element"
        } else {
            "associative list with keys may not have non-map elements"
        }
    } else if item.is_object() {
        "associative list without keys has an element that's a map type"
    } else if item.is_array() {
        "not supported: associative list with lists as elements"
    } else {
        "associative list without keys has an element that's an explicit null"
    };
    why.to_owned()
}

fn map_of<'a>(
    value: &'a Value,
    path: &str,
    complaints: &mut Vec<String>,
) -> Option<&'a serde_json::Map<String, Value>> {
    if !value.is_object() && !value.is_null() {
        complain(complaints, path, &format!("expected map, got {}", shown(value)));
    }
    value.as_object()
}

/// Formats a value like Go's `%v` of upstream's wrapper type.
fn shown(value: &Value) -> String {
    format!("&{{{}}}", plain(value))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let fields: Vec<String> = map.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Formats a value like `%#v`, which upstream uses if a string is expected.
fn shown_as_source(value: &Value) -> String {
    format!("&value.valueUnstructured{{Value:{}}}", source(value))
}

fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(source).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let field = |(name, value): (&String, &Value)| format!("{name:?}:{}", source(value));
            format!("map[string]interface {{}}{{{}}}", map.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Number(_) | Value::Null => "int64",
    }
}
