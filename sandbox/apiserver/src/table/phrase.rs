//! Texts that several cells are put together from.

use kcm_api::{LabelSelector, Selector};
use serde::Deserialize;
use serde_json::Value;

use crate::quantity::Quantity;

/// What a cell says of something that is not there.
pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";

pub(super) fn text_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// A field of each item, joined by commas.
pub(super) fn joined(items: &[Value], field: &str) -> String {
    items.iter().map(|item| text_of(item, field)).collect::<Vec<_>>().join(",")
}

pub(super) fn or<'a>(text: &'a str, absent: &'a str) -> &'a str {
    if text.is_empty() { absent } else { text }
}

/// Labels as the query syntax writes them, in order.
pub(super) fn labels(labels: Option<&Value>) -> String {
    let Some(labels) = labels.and_then(Value::as_object) else { return NONE.to_owned() };
    let mut pairs: Vec<String> =
        labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    pairs.sort_unstable();
    or(&pairs.join(","), NONE).to_owned()
}

/// A label selector as the query syntax writes it; one that selects all or nothing has no text.
pub(super) fn selector(selector: Option<&Value>) -> Option<String> {
    let parsed = selector.map(LabelSelector::deserialize).transpose().ok()?;
    let selector = Selector::try_from(parsed.as_ref()).ok()?;
    Some(if selector.is_nothing() { String::new() } else { selector.to_string() })
}

/// A label selector for a cell of its own.
pub(super) fn selector_or_none(value: Option<&Value>) -> Value {
    match selector(value) {
        None => "<error>".into(),
        Some(text) => or(&text, NONE).into(),
    }
}

/// The first texts of many, and how many there are beyond.
pub(super) fn first_of(texts: &[String], shown: usize) -> String {
    let list = texts[..shown.min(texts.len())].join(",");
    if texts.len() > shown { format!("{list} + {} more...", texts.len() - shown) } else { list }
}

/// A quantity as the API writes it; what is none is left as it is.
pub(super) fn quantity(amount: &Value) -> String {
    match Quantity::of(amount) {
        Some(quantity) => quantity.to_string(),
        None => amount.as_str().map_or_else(|| amount.to_string(), str::to_owned),
    }
}

/// The quantity in a map of resources, `0` where it is not there.
pub(super) fn amount(resources: Option<&Value>, name: &str) -> String {
    match resources.and_then(|resources| resources.get(name)) {
        None | Some(Value::Null) => "0".to_owned(),
        Some(amount) => quantity(amount),
    }
}
