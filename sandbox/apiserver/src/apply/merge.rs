//! Merge of an applied configuration into the live object, and removal of fields. Pure.
//!
//! # Upstream
//! `structured-merge-diff/typed/{merge,remove}.go`

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element;
use super::fieldset::FieldSet;
use super::shape::{Form, Shape};

/// Returns the live object with all fields of the applied one; no field is removed.
///
/// Lists keep the order of the live object, unless the applied one orders their common items differently.
pub(crate) fn merge(shape: Shape, live: &Value, applied: &Value) -> Value {
    merged(shape, Some(live), Some(applied)).unwrap_or(Value::Null)
}

fn merged(shape: Shape, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let given = applied.filter(|value| !value.is_null());
    let form = given.or(live).map_or(Form::Leaf, |value| shape.form(value));
    let fields_of = |side: Option<&Value>| side.and_then(Value::as_object).map_or(0, Map::len);
    match form {
        Form::Map if fields_of(live) + fields_of(applied) > 0 => {
            let (live, applied) = (live.and_then(Value::as_object), applied.and_then(Value::as_object));
            let names: BTreeSet<&String> = live.into_iter().chain(applied).flat_map(Map::keys).collect();
            let merge = |name: &String| {
                let (live, applied) = (live.and_then(|map| map.get(name)), applied.and_then(|map| map.get(name)));
                Some((name.clone(), merged(shape.field(name).0, live, applied)?))
            };
            let map: Map<String, Value> = names.into_iter().filter_map(merge).collect();
            (!map.is_empty()).then_some(Value::Object(map))
        }
        Form::List if !items_of(live).is_empty() || !items_of(applied).is_empty() => {
            let list = merged_items(shape, items_of(live), items_of(applied));
            (!list.is_empty()).then_some(Value::Array(list))
        }
        Form::Leaf | Form::Map | Form::List => applied.or(live).cloned(),
    }
}

fn items_of(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Merges items by their elements. Live items that are not applied keep their place between the items around
/// them; the rest is in the order in which it is applied.
fn merged_items(shape: Shape, live: &[Value], applied: &[Value]) -> Vec<Value> {
    let named =
        |items: &[Value]| -> Vec<String> { items.iter().map(|item| shape.element(item).unwrap_or_default()).collect() };
    let (live_names, applied_names) = (named(live), named(applied));
    // Duplicate live items are not merged.
    let mut live_by_name: BTreeMap<&str, Option<&Value>> = BTreeMap::new();
    for (name, item) in live_names.iter().zip(live) {
        live_by_name.entry(name).and_modify(|item| *item = None).or_insert(Some(item));
    }
    let applied_by_name: BTreeMap<&str, &Value> = applied_names.iter().map(String::as_str).zip(applied).collect();
    let mut shared = applied_names.iter().filter(|name| live_by_name.contains_key(name.as_str()));
    let mut next_shared = shared.next();

    let mut list = Vec::with_capacity(live.len().max(applied.len()));
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    let (mut at_live, mut at_applied) = (0, 0);
    while at_live < live.len() || at_applied < applied.len() {
        if let (Some(name), Some(wanted)) = (live_names.get(at_live), applied_names.get(at_applied)) {
            let is_shared = applied_by_name.contains_key(name.as_str());
            if name != wanted && is_shared && next_shared.is_some_and(|next| next != name) {
                // Merged at its position in the applied order.
                at_live += 1;
                continue;
            }
        }
        if let (Some(name), Some(item)) = (live_names.get(at_live), live.get(at_live)) {
            if !applied_by_name.contains_key(name.as_str()) {
                list.push(item.clone());
                at_live += 1;
                continue;
            }
            if applied_names.get(at_applied) == Some(name) || taken.contains(name.as_str()) {
                at_live += 1;
            }
        }
        if let (Some(name), Some(item)) = (applied_names.get(at_applied), applied.get(at_applied)) {
            taken.insert(name);
            let live = live_by_name.get(name.as_str()).copied().flatten();
            list.extend(merged(shape.item(), live, Some(item)));
            at_applied += 1;
            if next_shared == Some(name) {
                next_shared = shared.next();
            }
        }
    }
    list
}

/// Returns the object without the fields of the set; atomic values are removed as a whole.
pub(crate) fn without(shape: Shape, value: &Value, fields: &FieldSet) -> Value {
    if fields.is_empty() {
        return value.clone();
    }
    match (shape.form(value), value) {
        (Form::Map, Value::Object(map)) => {
            let keep = |(name, value): (&String, &Value)| {
                let kept = match fields.get(&element::field(name)) {
                    Some(node) if node.member => return None,
                    Some(node) => without(shape.field(name).0, value, &node.below),
                    None => value.clone(),
                };
                Some((name.clone(), kept))
            };
            let kept: Map<String, Value> = map.iter().filter_map(keep).collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Form::List, Value::Array(items)) => {
            let keep = |item: &Value| match shape.element(item).and_then(|element| fields.get(&element)) {
                Some(node) if node.member => None,
                Some(node) => Some(without(shape.item(), item, &node.below)),
                None => Some(item.clone()),
            };
            let kept: Vec<Value> = items.iter().filter_map(keep).collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (Form::Leaf | Form::Map | Form::List, _) => value.clone(),
    }
}
