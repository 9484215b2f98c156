//! Path elements in the serialized form of `managedFields`: `f:name` a field,
//! `k:{…}` an item by its keys, `v:…` an item of a set, `i:0` an item by its place. Pure.
//!
//! # Upstream
//! `structured-merge-diff/fieldpath/{element,serialize-pe}.go`, `value.Compare`

use std::cmp::Ordering;

use serde_json::{Map, Value};

pub(crate) fn field(name: &str) -> String {
    format!("f:{name}")
}

/// Returns the name of a named field.
pub(crate) fn name_of(element: &str) -> Option<&str> {
    element.strip_prefix("f:")
}

/// An item of a list by key.
pub(crate) fn key(keys: Map<String, Value>) -> String {
    format!("k:{}", text_of(&Value::Object(keys)))
}

/// An item of a set.
pub(crate) fn value(item: &Value) -> String {
    format!("v:{}", text_of(item))
}

/// Compact JSON that is safe within HTML, as Go writes it.
fn text_of(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Normalizes an element: `None` if it is malformed, `Some(None)` if its kind is unknown.
#[expect(clippy::option_option, reason = "wrong and unknown are different answers, and a third name would not help")]
pub(crate) fn canonical(element: &str) -> Option<Option<String>> {
    let (kind, rest) = element.split_once(':').filter(|(kind, _)| kind.len() == 1)?;
    Some(match kind {
        "f" => Some(element.to_owned()),
        "k" => Some(key(serde_json::from_str(rest).ok()?)),
        "v" => Some(value(&serde_json::from_str(rest).ok()?)),
        "i" => Some(format!("i:{}", rest.parse::<i64>().ok()?)),
        _ => None,
    })
}

/// Compares in upstream's order: fields, keys, values, indices; numbers by value.
pub(crate) fn order(a: &str, b: &str) -> Ordering {
    let rank = |element: &str| "fkvi".find(element.get(..1).unwrap_or_default());
    rank(a).cmp(&rank(b)).then_with(|| match (parsed(a), parsed(b)) {
        (Some(a), Some(b)) => order_of_values(&a, &b),
        _ => a.cmp(b),
    })
}

fn parsed(element: &str) -> Option<Value> {
    let (kind, rest) = element.split_once(':')?;
    if kind == "f" { None } else { serde_json::from_str(rest).ok() }
}

fn order_of_values(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default())
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Object(a), Value::Object(b)) => {
            let fields = a.iter().zip(b).map(|((x, v), (y, w))| x.cmp(y).then_with(|| order_of_values(v, w)));
            fields.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Formats a path for error messages: `.spec.containers[name="web"].image`.
pub(crate) fn display<S: AsRef<str>>(path: &[S]) -> String {
    path.iter().map(|element| display_one(element.as_ref())).collect()
}

/// Formats a path element for error messages.
pub(crate) fn display_one(element: &str) -> String {
    if let Some(name) = name_of(element) {
        return format!(".{name}");
    }
    match parsed(element) {
        Some(Value::Object(keys)) => {
            let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
            format!("[{}]", keys.join(","))
        }
        Some(value) if element.starts_with("v:") => format!("[={}]", quoted(&value)),
        _ => format!("[{}]", element.get(2..).unwrap_or_default()),
    }
}

fn quoted(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_formatted_as_in_upstreams_errors() {
        let cases = [
            (vec!["f:spec", "f:containers", "k:{\"name\":\"web\"}", "f:image"], ".spec.containers[name=\"web\"].image"),
            (
                vec!["f:ports", "k:{\"containerPort\":80,\"protocol\":\"TCP\"}"],
                ".ports[containerPort=80,protocol=\"TCP\"]",
            ),
            (vec!["f:finalizers", "v:\"a/b\""], ".finalizers[=\"a/b\"]"),
            (vec!["i:3"], "[3]"),
        ];
        for (path, text) in cases {
            assert_eq!(display(&path), text);
        }
    }

    #[test]
    fn json_is_html_escaped() {
        assert_eq!(value(&"a<b>&c".into()), "v:\"a\\u003cb\\u003e\\u0026c\"");
        assert_eq!(canonical("v:\"<\""), Some(Some("v:\"\\u003c\"".to_owned())));
    }
}
