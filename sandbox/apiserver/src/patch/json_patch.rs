//! JSON patch (RFC 6902), with the liberties of upstream's library. Pure.
//!
//! # Upstream
//! `gopkg.in/evanphx/json-patch.v4`: negative indices count from the end, what precedes the first slash of a path is
//! skipped, a field of a map is replaced even if it is absent, and an absent value is null.

use serde_json::Value;

use crate::status::Status;

/// Highest number of operations of a patch.
const MOST_OPERATIONS: usize = 10_000;
/// Highest total size of the copies of a patch, in bytes of JSON.
///
/// # Upstream
/// `JSONPatchMaxCopyBytes`
const MOST_COPIED: usize = 3 * 1024 * 1024;
/// As deep as JSON is read: operations could put one thing into another for ever.
const DEEPEST: usize = 250;

/// Applies the operations in order; none of them takes effect if one fails.
pub(crate) fn apply(object: &Value, patch: &Value) -> Result<Value, Status> {
    let operations = match patch {
        Value::Null => &[],
        Value::Array(operations) => operations.as_slice(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            return Err(not_decoded(patch, "[]handlers.jsonPatchOp"));
        }
    };
    if let Some(odd) = operations.iter().find(|operation| !operation.is_object()) {
        return Err(not_decoded(odd, "handlers.jsonPatchOp"));
    }
    if operations.len() > MOST_OPERATIONS {
        let given = operations.len();
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {given}"
        );
        return Err(Status::new(413, "RequestEntityTooLarge", message));
    }
    let mut patched = object.clone();
    let mut spent = Spent { copied: 0, depth: depth(object) };
    for operation in operations {
        // Upstream returns this text for every operation that cannot be applied.
        perform(&mut patched, operation, &mut spent).ok_or_else(|| {
            Status::without_details(422, "Invalid", "the server rejected our request due to an error in our request")
        })?;
    }
    Ok(patched)
}

fn not_decoded(value: &Value, wanted: &str) -> Status {
    super::not_decoded("error decoding patch: ", value, wanted)
}

/// The size and depth that the operations have used so far.
struct Spent {
    copied: usize,
    /// As deep as the document is, or less deep.
    depth: usize,
}

fn perform(document: &mut Value, operation: &Value, spent: &mut Spent) -> Option<()> {
    let path = operation.get("path")?.as_str()?;
    let from = || operation.get("from").and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or_default();
    match operation.get("op")?.as_str()? {
        "add" => add(document, path, value(), spent),
        "remove" => take(document, path).map(drop),
        "replace" => replace(document, path, value(), spent),
        "move" => {
            let from = from()?;
            let value = take(document, from)?;
            // A moved value may be large, and moved often: it is checked only if it may be too deep.
            let most = (length(path) + spent.depth).saturating_sub(length(from)).max(spent.depth);
            if most > DEEPEST {
                spent.depth = depth(document).max(length(path) + depth(&value));
            } else {
                spent.depth = most;
            }
            if spent.depth > DEEPEST {
                return None;
            }
            insert(document, path, value)
        }
        "copy" => {
            let value = read(document, from()?)?;
            spent.copied += value.to_string().len();
            if spent.copied > MOST_COPIED {
                return None;
            }
            let value = value.clone();
            add(document, path, value, spent)
        }
        "test" => {
            let found = if path.is_empty() { &*document } else { read(document, path)? };
            (*found == value()).then_some(())
        }
        _ => None,
    }
}

/// The parent that a path leads to, and its last key.
fn parent_of<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let keys: Vec<String> = path.split('/').skip(1).map(unescape).collect();
    let (last, parents) = keys.split_last()?;
    let mut parent = document;
    for key in parents {
        parent = match parent {
            Value::Object(map) => map.get_mut(key)?,
            Value::Array(items) => {
                let at = index(key, items.len())?;
                items.get_mut(at)?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    Some((parent, last.clone()))
}

fn unescape(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

/// An index into a list of `length` items; it may lie beyond the end.
fn index(key: &str, length: usize) -> Option<usize> {
    let given: isize = key.parse().ok()?;
    if given < 0 { length.checked_sub(given.unsigned_abs()) } else { usize::try_from(given).ok() }
}

/// The value at a path; a field that a map does not have is null.
fn read<'a>(document: &'a mut Value, path: &str) -> Option<&'a Value> {
    let (parent, key) = parent_of(document, path)?;
    match parent {
        Value::Object(map) => Some(map.get(&key).unwrap_or(&Value::Null)),
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            items.get(at)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn length(path: &str) -> usize {
    path.matches('/').count()
}

/// Makes sure that a value is not too deep at its new place.
fn check_depth(path: &str, value: &Value, spent: &mut Spent) -> Option<()> {
    spent.depth = spent.depth.max(length(path) + depth(value));
    (spent.depth <= DEEPEST).then_some(())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn add(document: &mut Value, path: &str, value: Value, spent: &mut Spent) -> Option<()> {
    check_depth(path, &value, spent)?;
    insert(document, path, value)
}

fn insert(document: &mut Value, path: &str, value: Value) -> Option<()> {
    let (parent, key) = parent_of(document, path)?;
    match parent {
        Value::Object(map) => drop(map.insert(key, value)),
        Value::Array(items) => {
            let at = if key == "-" { items.len() } else { index(&key, items.len() + 1)? };
            if at > items.len() {
                return None;
            }
            items.insert(at, value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

fn replace(document: &mut Value, path: &str, value: Value, spent: &mut Spent) -> Option<()> {
    check_depth(path, &value, spent)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return None;
        }
        *document = value;
        return Some(());
    }
    let (parent, key) = parent_of(document, path)?;
    match parent {
        Value::Object(map) => drop(map.insert(key, value)),
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            *items.get_mut(at)? = value;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

fn take(document: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = parent_of(document, path)?;
    match parent {
        Value::Object(map) => map.remove(&key),
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            (at < items.len()).then(|| items.remove(at))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_do_what_the_standard_and_upstream_say() {
        let document = json!({ "a": [1, 2], "b": { "c/d": 1, "e~f": 2 }, "n": null });
        let rows = [
            ("adds to the end", json!([{ "op": "add", "path": "/a/-", "value": 3 }]), "/a", Some(json!([1, 2, 3]))),
            ("inserts", json!([{ "op": "add", "path": "/a/1", "value": 3 }]), "/a", Some(json!([1, 3, 2]))),
            ("counts from the end", json!([{ "op": "remove", "path": "/a/-2" }]), "/a", Some(json!([2]))),
            ("counts beyond the start", json!([{ "op": "remove", "path": "/a/-3" }]), "", None),
            (
                "adds before the end",
                json!([{ "op": "add", "path": "/a/-1", "value": 3 }]),
                "/a",
                Some(json!([1, 2, 3])),
            ),
            ("adds beyond the end", json!([{ "op": "add", "path": "/a/3", "value": 3 }]), "", None),
            ("adds nothing", json!([{ "op": "add", "path": "/x" }]), "/x", Some(Value::Null)),
            ("adds under what is not there", json!([{ "op": "add", "path": "/x/y", "value": 1 }]), "", None),
            ("removes from a list", json!([{ "op": "remove", "path": "/a/0" }]), "/a", Some(json!([2]))),
            ("removes what is not there", json!([{ "op": "remove", "path": "/x" }]), "", None),
            ("replaces", json!([{ "op": "replace", "path": "/a/0", "value": 9 }]), "/a", Some(json!([9, 2]))),
            (
                "replaces what is not there",
                json!([{ "op": "replace", "path": "/x", "value": 9 }]),
                "/x",
                Some(json!(9)),
            ),
            ("replaces beyond the end", json!([{ "op": "replace", "path": "/a/2", "value": 9 }]), "", None),
            ("moves", json!([{ "op": "move", "from": "/a/0", "path": "/x" }]), "/x", Some(json!(1))),
            ("moves what is not there", json!([{ "op": "move", "from": "/x", "path": "/y" }]), "", None),
            ("copies", json!([{ "op": "copy", "from": "/a", "path": "/x" }]), "/x/1", Some(json!(2))),
            ("unescapes a slash", json!([{ "op": "test", "path": "/b/c~1d", "value": 1 }]), "/b/c~1d", Some(json!(1))),
            ("unescapes a tilde", json!([{ "op": "remove", "path": "/b/e~0f" }]), "/b", Some(json!({ "c/d": 1 }))),
            ("tests", json!([{ "op": "test", "path": "/a/0", "value": 2 }]), "", None),
            (
                "tests that there is none",
                json!([{ "op": "test", "path": "/x", "value": null }]),
                "/a/0",
                Some(json!(1)),
            ),
            ("tests under what is not there", json!([{ "op": "test", "path": "/x/y", "value": null }]), "", None),
            ("tests all", json!([{ "op": "test", "path": "", "value": {} }]), "", None),
            (
                "replaces all",
                json!([{ "op": "replace", "path": "", "value": { "z": 1 } }]),
                "",
                Some(json!({ "z": 1 })),
            ),
            ("adds all", json!([{ "op": "add", "path": "", "value": { "z": 1 } }]), "", None),
            ("an unknown operation", json!([{ "op": "increase", "path": "/a/0" }]), "", None),
            ("no path", json!([{ "op": "remove" }]), "", None),
            ("nothing at all", Value::Null, "/a/1", Some(json!(2))),
            ("no list", json!({ "op": "remove", "path": "/a" }), "", None),
            ("no operations", json!([1]), "", None),
        ];
        for (name, patch, pointer, expected) in rows {
            let patched = apply(&document, &patch).ok();
            let found = patched.as_ref().and_then(|patched| patched.pointer(pointer)).cloned();
            assert_eq!(found, expected, "{name}");
        }
    }
}
