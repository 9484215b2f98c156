//! JSON patch (RFC 6902) and JSON merge patch (RFC 7386). Pure.

use serde_json::Value;

use crate::object;
use crate::status::Status;

/// The content types of patches that are read.
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
/// See [`JSON_PATCH`].
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
/// See [`JSON_PATCH`].
pub(crate) const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";

/// Applies a patch of the given content type to `object`.
pub(crate) fn apply(content_type: &str, object: &Value, body: &[u8], custom: bool) -> Result<Value, Status> {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    let read = || {
        serde_json::from_slice::<Value>(body)
            .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))
    };
    match media_type {
        JSON_PATCH => json_patch(object, &read()?),
        MERGE_PATCH => {
            let patch = read()?;
            if !patch.is_object() {
                return Err(Status::bad_request("Invalid JSON Patch"));
            }
            let mut patched = object.clone();
            merge(&mut patched, &patch);
            Ok(patched)
        }
        STRATEGIC_MERGE_PATCH if !custom => {
            let mut patched = object.clone();
            crate::strategic::merge(&mut patched, &read()?)?;
            Ok(patched)
        }
        _ if custom => Err(Status::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH])),
        _ => Err(Status::without_details(415, "UnsupportedMediaType", "415: Unsupported Media Type")),
    }
}

/// Merges `patch` into `target`: maps field by field, null removes, everything else replaces.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    let target = object::map_of(target);
    for (field, value) in patch {
        if value.is_null() {
            target.remove(field);
        } else {
            merge(target.entry(field).or_insert(Value::Null), value);
        }
    }
}

/// Applies the operations in order; none of them takes effect where one fails.
pub(crate) fn json_patch(object: &Value, patch: &Value) -> Result<Value, Status> {
    let operations = patch.as_array().ok_or_else(|| Status::bad_request("Invalid JSON Patch"))?;
    let mut patched = object.clone();
    for operation in operations {
        // Upstream answers every operation that cannot be applied with this text.
        apply_operation(&mut patched, operation).ok_or_else(|| {
            Status::new(422, "Invalid", "the server rejected our request due to an error in our request")
        })?;
    }
    Ok(patched)
}

fn apply_operation(document: &mut Value, operation: &Value) -> Option<()> {
    let path = operation.get("path")?.as_str()?;
    let value = || operation.get("value").cloned();
    match operation.get("op")?.as_str()? {
        "add" => add(document, path, value()?),
        "remove" => take(document, path).map(drop),
        "replace" => {
            let value = value()?;
            *document.pointer_mut(path)? = value;
            Some(())
        }
        "move" => {
            let value = take(document, operation.get("from")?.as_str()?)?;
            add(document, path, value)
        }
        "copy" => {
            let value = document.pointer(operation.get("from")?.as_str()?)?.clone();
            add(document, path, value)
        }
        // An absent field tests equal to null, as upstream's library has it.
        "test" => (document.pointer(path).unwrap_or(&Value::Null) == operation.get("value").unwrap_or(&Value::Null))
            .then_some(()),
        _ => None,
    }
}

/// Parent pointer and unescaped last token of a JSON pointer.
fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(document: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *document = value;
        return Some(());
    }
    let (parent, last) = split(path)?;
    let parent = document.pointer_mut(parent)?;
    if let Some(items) = parent.as_array_mut() {
        let at = if last == "-" { items.len() } else { last.parse().ok()? };
        if at > items.len() {
            return None;
        }
        items.insert(at, value);
    } else {
        parent.as_object_mut()?.insert(last, value);
    }
    Some(())
}

fn take(document: &mut Value, path: &str) -> Option<Value> {
    let (parent, last) = split(path)?;
    let parent = document.pointer_mut(parent)?;
    if let Some(items) = parent.as_array_mut() {
        let at: usize = last.parse().ok()?;
        return (at < items.len()).then(|| items.remove(at));
    }
    parent.as_object_mut()?.remove(&last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn json_patch_operations_do_what_the_standard_says() {
        let document = json!({ "a": [1, 2], "b": { "c/d": 1, "e~f": 2 }, "n": null });
        let rows = [
            ("adds to the end", json!([{ "op": "add", "path": "/a/-", "value": 3 }]), "/a", Some(json!([1, 2, 3]))),
            ("inserts", json!([{ "op": "add", "path": "/a/1", "value": 3 }]), "/a", Some(json!([1, 3, 2]))),
            ("adds beyond the end", json!([{ "op": "add", "path": "/a/3", "value": 3 }]), "", None),
            ("removes from a list", json!([{ "op": "remove", "path": "/a/0" }]), "/a", Some(json!([2]))),
            ("removes what is not there", json!([{ "op": "remove", "path": "/x" }]), "", None),
            ("replaces", json!([{ "op": "replace", "path": "/a/0", "value": 9 }]), "/a", Some(json!([9, 2]))),
            ("replaces what is not there", json!([{ "op": "replace", "path": "/x", "value": 9 }]), "", None),
            ("moves", json!([{ "op": "move", "from": "/a/0", "path": "/x" }]), "/x", Some(json!(1))),
            ("copies", json!([{ "op": "copy", "from": "/a", "path": "/x" }]), "/x/1", Some(json!(2))),
            ("unescapes a slash", json!([{ "op": "test", "path": "/b/c~1d", "value": 1 }]), "/b/c~1d", Some(json!(1))),
            ("unescapes a tilde", json!([{ "op": "remove", "path": "/b/e~0f" }]), "/b", Some(json!({ "c/d": 1 }))),
            ("tests", json!([{ "op": "test", "path": "/a/0", "value": 2 }]), "", None),
            ("replaces all", json!([{ "op": "add", "path": "", "value": { "z": 1 } }]), "", Some(json!({ "z": 1 }))),
            ("an unknown operation", json!([{ "op": "increase", "path": "/a/0" }]), "", None),
            ("no list", json!({ "op": "remove", "path": "/a" }), "", None),
        ];
        for (name, patch, pointer, expected) in rows {
            let patched = json_patch(&document, &patch).ok();
            let found = patched.as_ref().and_then(|patched| patched.pointer(pointer)).cloned();
            assert_eq!(found, expected, "{name}");
        }
    }

    /// JSON without nulls, which a merge patch cannot set.
    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..4_i64).prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn maps() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[a-c]", documents(), 0..3).prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    /// The merge patch that leads from one document to the other.
    fn difference(from: &Value, to: &Value) -> Value {
        let (Some(old), Some(new)) = (from.as_object(), to.as_object()) else { return to.clone() };
        let mut patch = serde_json::Map::new();
        for field in old.keys().filter(|field| !new.contains_key(*field)) {
            patch.insert(field.clone(), Value::Null);
        }
        for (field, value) in new.iter().filter(|(field, value)| old.get(*field) != Some(value)) {
            let nested = old.get(field).map_or_else(|| value.clone(), |old| difference(old, value));
            patch.insert(field.clone(), nested);
        }
        Value::Object(patch)
    }

    proptest! {
        #[test]
        fn the_difference_of_two_documents_leads_from_one_to_the_other(from in maps(), to in maps()) {
            let patch = difference(&from, &to);
            let mut merged = from.clone();
            merge(&mut merged, &patch);
            prop_assert_eq!(&merged, &to);

            // Lists without merge keys are replaced whole, so that strategic merge means the same for them.
            let mut strategic = from.clone();
            prop_assert!(crate::strategic::merge(&mut strategic, &patch).is_ok());
            prop_assert_eq!(&strategic, &to);
        }

        #[test]
        fn a_merge_patch_is_idempotent(from in maps(), patch in maps()) {
            let mut once = from;
            merge(&mut once, &patch);
            let mut twice = once.clone();
            merge(&mut twice, &patch);
            prop_assert_eq!(once, twice);
        }
    }
}
