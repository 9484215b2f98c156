//! Strings that cells are put together from.

use kcm_api::{LabelSelector, Selector};
use serde::Deserialize;
use serde_json::Value;

use crate::quantity::Quantity;

/// The text of a cell whose value is absent.
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

/// A label selector as the query syntax writes it, or what stands for an invalid or an empty one.
pub(super) fn selector(selector: Option<&Value>, invalid: &str, empty: &str) -> String {
    let parsed = selector.map(LabelSelector::deserialize).transpose().ok();
    let selector = parsed.and_then(|parsed| Selector::try_from(parsed.as_ref()).ok());
    match selector {
        None => invalid.to_owned(),
        Some(selector) if selector.is_nothing() => empty.to_owned(),
        Some(selector) => or(&selector.to_string(), empty).to_owned(),
    }
}

/// The first of many strings, and how many more there are.
pub(super) fn first_of(items: &[String], shown: usize) -> String {
    let list = items[..shown.min(items.len())].join(",");
    if items.len() > shown { format!("{list} + {} more...", items.len() - shown) } else { list }
}

/// A quantity as the API writes it; what is none is left as it is.
pub(super) fn quantity(amount: &Value) -> String {
    match Quantity::of(amount) {
        Some(quantity) => quantity.to_string(),
        None => amount.as_str().map_or_else(|| amount.to_string(), str::to_owned),
    }
}

/// The quantity in a map of resources, `0` if it is absent.
pub(super) fn amount(resources: Option<&Value>, name: &str) -> String {
    match resources.and_then(|resources| resources.get(name)) {
        None | Some(Value::Null) => "0".to_owned(),
        Some(amount) => quantity(amount),
    }
}
