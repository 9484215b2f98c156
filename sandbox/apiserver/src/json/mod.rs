//! Reading and editing objects as JSON.

pub(crate) mod encode;
mod merge_patch;
mod metadata;

use serde_json::{Map, Value};

pub(crate) use merge_patch::merge;
pub use metadata::{finalizers, is_terminating, labels_of, name, uid, version};
pub(crate) use metadata::{key_of, prune, read_labels};

/// Returns the string at `path`, if there is one.
#[must_use]
pub fn text<'a>(object: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(object, path)?.as_str()
}

/// The value at `path`; null counts as absent.
#[must_use]
pub fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let found = path.iter().try_fold(object, |value, field| value.get(field))?;
    (!found.is_null()).then_some(found)
}

/// Returns the list at `path`, or an empty list.
#[must_use]
pub fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Sets `path`, making the maps that lead there; `None` removes the last field and makes nothing.
pub fn set(object: &mut Value, path: &[&str], value: Option<Value>) {
    let Some((last, parents)) = path.split_last() else { return };
    let Some(value) = value else {
        let parent = parents.iter().try_fold(object, |value, field| value.get_mut(*field));
        if let Some(map) = parent.and_then(Value::as_object_mut) {
            map.remove(*last);
        }
        return;
    };
    let mut target = object;
    for field in parents {
        target = map_of(target).entry(*field).or_insert(Value::Null);
    }
    map_of(target).insert((*last).to_owned(), value);
}

/// Sets `path` if it is absent.
pub fn set_default(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    if at(object, path).is_none() {
        set(object, path, Some(value.into()));
    }
}

/// Returns the value as a map. Any other value is replaced with an empty map.
pub fn map_of(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("the value was just made a map")
}

/// Copies `path` from one object to another, its absence included.
pub(crate) fn carry_over(from: &Value, to: &mut Value, path: &[&str]) {
    set(to, path, at(from, path).cloned());
}

/// Removes fields that are null, at any depth.
pub(crate) fn drop_nulls(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, value| !value.is_null());
        map.values_mut().for_each(drop_nulls);
    } else if let Some(items) = value.as_array_mut() {
        items.iter_mut().for_each(drop_nulls);
    }
}
