//! Columns that the definition of a custom resource names.
//!
//! # Upstream
//! `apiextensions-apiserver/pkg/registry/customresource/tableconvertor`; of JSON paths, fields, indexes and filters by
//! the string of one field are supported.

use serde_json::{Value, json};

use super::row::Row;
use crate::json::{list, text};
use crate::kinds::Kind;

/// Returns the `additionalPrinterColumns` of a definition.
pub(super) fn columns(kind: &Kind) -> Vec<Value> {
    kind.definition.as_deref().map_or(&[][..], |version| list(version, &["additionalPrinterColumns"])).to_vec()
}

pub(super) fn described(column: &Value) -> Value {
    let field = |name| text(column, &[name]).unwrap_or_default();
    let description = match field("description") {
        "" => format!("Custom resource definition column (in JSONPath format): {}", field("jsonPath")),
        given => given.to_owned(),
    };
    json!({
        "name": field("name"), "type": field("type"), "format": field("format"), "description": description,
        "priority": column.get("priority").and_then(Value::as_i64).unwrap_or(0),
    })
}

pub(super) fn cell(column: &Value, row: &Row<'_>) -> Value {
    let found = find(row.object, text(column, &["jsonPath"]).unwrap_or_default()).filter(|value| !value.is_null());
    match (text(column, &["type"]), found) {
        (_, None) => Value::Null,
        (Some("date"), Some(time)) => row.since_time(time.as_str().and_then(|time| time.parse().ok())).into(),
        (Some("string"), Some(value)) if !value.is_string() => value.to_string().into(),
        (_, Some(value)) => value.clone(),
    }
}

fn find<'a>(mut value: &'a Value, mut path: &str) -> Option<&'a Value> {
    while !path.is_empty() {
        if let Some(filter) = path.strip_prefix("[?(@.") {
            let (filter, rest) = filter.split_once(")]")?;
            let (field, wanted) = filter.split_once("==")?;
            let wanted = wanted.trim().trim_matches(['"', '\'']);
            value = value.as_array()?.iter().find(|item| text(item, &[field.trim()]) == Some(wanted))?;
            path = rest;
        } else if let Some(index) = path.strip_prefix('[') {
            let (index, rest) = index.split_once(']')?;
            value = value.get(index.parse::<usize>().ok()?)?;
            path = rest;
        } else {
            let field = path.strip_prefix('.')?;
            let (field, rest) = field.split_at(field.find(['.', '[']).unwrap_or(field.len()));
            value = value.get(field)?;
            path = rest;
        }
    }
    Some(value)
}
