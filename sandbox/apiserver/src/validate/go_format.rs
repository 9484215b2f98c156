//! Values as the API prints them in errors: fields in the order of the Go types, absent ones as null if the types have
//! no names for JSON.

use serde_json::Value;

/// The order of fields of the types that errors show with their names for JSON.
const ORDER: [&str; 12] = [
    "matchLabels",
    "matchExpressions",
    "apiVersion",
    "kind",
    "key",
    "operator",
    "name",
    "uid",
    "values",
    "controller",
    "blockOwnerDeletion",
    "namespace",
];

/// JSON with the fields of selectors and owners in their order.
pub(super) fn json(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<(&String, &Value)> = map.iter().collect();
            let position = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
            if fields.iter().all(|(name, _)| ORDER.contains(&name.as_str())) {
                fields.sort_by_key(|(name, _)| position(name));
            }
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), json(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(",")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// The fields of a type without names for JSON: `(name in Go, name in JSON, string for an absent one)`.
pub(super) fn go(value: &Value, fields: &[(&str, &str, &str)]) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(go, name, absent)| {
            let shown = value.get(name).filter(|value| !value.is_null()).map_or_else(|| (*absent).to_owned(), json);
            format!("\"{go}\":{shown}")
        })
        .collect();
    format!("{{{}}}", fields.join(","))
}
