//! Lists in a strategic merge patch: objects are merged by a key, plain values as sets, in the requested order.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{PATCH, SET_ORDER, Shape, failed, merge_map, print_list, print_map, unknown_directive, without_directives};
use crate::schema::Patch;
use crate::status::Status;

/// Merges `patch` into the items of a list; objects are identified by `key`.
///
/// Items of the patch come in its order; the others keep theirs, and their place as far as both were known.
pub(super) fn merge(
    known: Vec<Value>,
    patch: Vec<Value>,
    shape: Shape,
    key: Option<&'static str>,
) -> Result<Vec<Value>, Status> {
    if known.is_empty() && patch.is_empty() {
        return Ok(known);
    }
    check_types(&known, &patch)?;
    if !known.iter().chain(&patch).any(Value::is_object) {
        let mut seen = HashSet::new();
        let merged = known.iter().chain(&patch).filter(|value| seen.insert(*value)).cloned().collect();
        return Ok(in_order(merged, &patch, &known, None));
    }
    let Some(key) = key else { return Err(failed("cannot merge lists without merge key for ")) };
    let (known, patch) = apply_directives(known, patch, key)?;
    let mut merged = known.clone();
    let mut places: HashMap<&Value, usize> = places(&known, Some(key));
    for item in &patch {
        let item = map_in(item)?;
        let value = item.get(key).ok_or_else(|| no_merge_key(item, key))?;
        match places.get(value).and_then(|at| merged.get_mut(*at)).and_then(Value::as_object_mut) {
            Some(found) => merge_map(found, item.clone(), shape)?,
            None => {
                if let Some(new) = without_directives(Value::Object(item.clone())) {
                    places.insert(value, merged.len());
                    merged.push(new);
                }
            }
        }
    }
    check_keys(&merged, key)?;
    Ok(in_order(merged, &patch, &known, Some(key)))
}

/// Merges the list of a field and puts it in the order of `$setElementOrder`.
pub(super) fn merge_in_order(
    target: &mut Map<String, Value>,
    field: &str,
    patch: Option<Value>,
    order: Value,
    shape: Shape,
    how: Patch,
) -> Result<(), Status> {
    let Value::Array(order) = order else { return Err(not_a_list(&order)) };
    let known = target.get(field).cloned().map(list).transpose()?;
    let patch = patch.map(list).transpose()?;
    check_order(patch.as_deref().unwrap_or_default(), &order, how.key)?;
    let merged = match (known.clone(), patch.clone()) {
        (None, None) => return Ok(()),
        (Some(known), None) => known,
        (None, Some(patch)) => patch.into_iter().filter_map(without_directives).collect(),
        (Some(known), Some(patch)) if how.merge => merge(known, patch, shape, how.key)?,
        (Some(_), Some(patch)) => patch,
    };
    if known.iter().flatten().chain(patch.iter().flatten()).next().is_none() {
        return Err(failed("no elements in any of the given slices"));
    }
    if let Some(key) = how.key {
        check_keys(&merged, key)?;
    }
    let ordered = in_order(merged, &order, &known.unwrap_or_default(), how.key);
    target.insert(field.to_owned(), ordered.into());
    Ok(())
}

/// Deletes and replaces what the patch says so of; its other items are left to be merged.
fn apply_directives(known: Vec<Value>, patch: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>), Status> {
    let (mut deleted, mut rest) = (HashSet::new(), Vec::new());
    let mut replaces = false;
    for item in patch {
        let map = map_in(&item)?;
        match map.get(PATCH) {
            None => rest.push(item),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    let value = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
                    deleted.insert(value.clone());
                }
                Some("replace") => replaces = true,
                Some("merge") => return Err(failed("merging lists cannot yet be specified in the patch")),
                Some(_) | None => return Err(unknown_directive(directive, map)),
            },
        }
    }
    if replaces {
        return Ok((rest, Vec::new()));
    }
    let known = known.into_iter().filter(|item| item.get(key).is_none_or(|value| !deleted.contains(value)));
    Ok((known.collect(), rest))
}

/// Puts the items that `wanted` names in its order, and the others between them as they were in `before`.
fn in_order(items: Vec<Value>, wanted: &[Value], before: &[Value], key: Option<&str>) -> Vec<Value> {
    let (wanted, before) = (places(wanted, key), places(before, key));
    let placed = items.into_iter().map(|item| {
        let id = id(&item, key);
        Placed { wanted: wanted.get(id).copied(), before: before.get(id).copied(), item }
    });
    let (mut named, mut others): (Vec<Placed>, Vec<Placed>) = placed.partition(|placed| placed.wanted.is_some());
    named.sort_by_key(|placed| placed.wanted);
    others.sort_by_key(|placed| placed.before.unwrap_or(usize::MAX));

    let mut ordered = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(next), Some(other)) = (named.peek(), others.peek()) {
        let comes_first = other.before.zip(next.before).is_some_and(|(other, next)| other < next);
        ordered.extend(if comes_first { others.next() } else { named.next() });
    }
    ordered.extend(named);
    ordered.extend(others);
    ordered.into_iter().map(|placed| placed.item).collect()
}

/// An item with its places in two other lists.
struct Placed {
    wanted: Option<usize>,
    before: Option<usize>,
    item: Value,
}

/// Returns the identity of an item.
fn id<'a>(item: &'a Value, key: Option<&str>) -> &'a Value {
    static ABSENT: Value = Value::Null;
    key.map_or(item, |key| item.get(key).unwrap_or(&ABSENT))
}

/// Returns the index of each item of a list. Of equal items the first counts.
fn places<'a>(list: &'a [Value], key: Option<&str>) -> HashMap<&'a Value, usize> {
    let mut places = HashMap::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        places.entry(id(item, key)).or_insert(at);
    }
    places
}

/// The patch must name its items in the order that it wants, and no others.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Status> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter();
    for item in patch {
        if item.get(PATCH).is_some() {
            continue;
        }
        let id = |value: &Value| key.map_or_else(|| Some(value.clone()), |key| value.get(key).cloned());
        let id_of_item = id(item);
        if let (Some(key), None) = (key, &id_of_item) {
            return Err(no_merge_key(map_in(item)?, key));
        }
        if !wanted.any(|value| id(value) == id_of_item) {
            return Err(failed(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                print_list(patch),
                print_list(order)
            )));
        }
    }
    Ok(())
}

fn check_keys(items: &[Value], key: &str) -> Result<(), Status> {
    items.iter().try_for_each(|item| {
        let map = map_in(item)?;
        if map.contains_key(key) { Ok(()) } else { Err(no_merge_key(map, key)) }
    })
}

fn check_types(known: &[Value], patch: &[Value]) -> Result<(), Status> {
    let mut all = known.iter().chain(patch);
    let Some(first) = all.next() else { return Ok(()) };
    if first.is_array() {
        return Err(Status::without_details(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        ));
    }
    if all.all(|item| type_name(item) == type_name(first)) {
        return Ok(());
    }
    let both = format!("[{} {}]", print_list(known), print_list(patch));
    Err(failed(format!("list element types are not identical: {both}")))
}

fn list(value: Value) -> Result<Vec<Value>, Status> {
    if let Value::Array(items) = value { Ok(items) } else { Err(not_a_list(&value)) }
}

fn map_in(item: &Value) -> Result<&Map<String, Value>, Status> {
    let not_a_map = || failed(format!("expected a map[string]interface {{}}, but received a {}", type_name(item)));
    item.as_object().ok_or_else(not_a_map)
}

fn not_a_list(value: &Value) -> Status {
    failed(format!("expected a []interface {{}}, but received a {}", type_name(value)))
}

fn no_merge_key(map: &Map<String, Value>, key: &str) -> Status {
    failed(format!("map: {} does not contain declared merge key: {key}", print_map(map)))
}

const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
