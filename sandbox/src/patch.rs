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
        _ => Err(Status::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH])),
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
