//! Strategic merge patch for the lists that built-in kinds merge by a key. Pure.
//!
//! Directives: `$patch` (`delete`, `replace`, `merge`) in maps and in items of merged lists, `$retainKeys`,
//! `$deleteFromPrimitiveList/…`. `$setElementOrder/…` is accepted and does not reorder.
//!
//! # Upstream
//! `apimachinery/pkg/util/strategicpatch`; the keys are the `patchMergeKey` tags of `k8s.io/api`.

use serde_json::{Map, Value};

use crate::object;
use crate::status::Status;

/// How the list in a field is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListMerge {
    /// Item by item, by this key.
    By(&'static str),
    /// As a set of plain values.
    Set,
    /// Replaced whole.
    Atomic,
}

// Field names are enough to tell the lists apart, but for two: ports of a service, and volume devices.
fn list_merge(parent: &str, field: &str) -> ListMerge {
    match field {
        "ownerReferences" => ListMerge::By("uid"),
        "finalizers" => ListMerge::Set,
        "conditions" | "addresses" => ListMerge::By("type"),
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "schedulingGates"
        | "resourceClaims"
        | "secrets" => ListMerge::By("name"),
        "ports" if parent == "containers" || parent == "initContainers" => ListMerge::By("containerPort"),
        "ports" => ListMerge::By("port"),
        "volumeMounts" => ListMerge::By("mountPath"),
        "volumeDevices" => ListMerge::By("devicePath"),
        "hostAliases" | "podIPs" | "hostIPs" => ListMerge::By("ip"),
        "topologySpreadConstraints" => ListMerge::By("topologyKey"),
        _ => ListMerge::Atomic,
    }
}

/// Merges `patch` into `target`.
pub(crate) fn merge(target: &mut Value, patch: &Value) -> Result<(), Status> {
    let Some(patch) = patch.as_object() else {
        return Err(Status::bad_request("error decoding patch: a strategic merge patch is an object"));
    };
    merge_map(object::map_of(target), patch, "")
}

fn merge_map(target: &mut Map<String, Value>, patch: &Map<String, Value>, parent: &str) -> Result<(), Status> {
    match patch.get("$patch").map(|directive| directive.as_str().unwrap_or_default()) {
        None | Some("merge") => {}
        Some("replace") => {
            *target = without_directives(patch);
            return Ok(());
        }
        Some("delete") => {
            target.clear();
            return Ok(());
        }
        Some(other) => return Err(unknown_directive(other)),
    }
    if let Some(kept) = patch.get("$retainKeys").and_then(Value::as_array) {
        target.retain(|field, _| kept.iter().any(|kept| kept == field));
    }
    for (field, value) in patch {
        if let Some(list) = field.strip_prefix("$deleteFromPrimitiveList/") {
            remove_from_set(target, list, value);
        } else if field.starts_with('$') {
            // Read above, or an order of elements.
        } else if value.is_null() {
            target.remove(field);
        } else {
            merge_field(target, field, value, parent)?;
        }
    }
    Ok(())
}

fn merge_field(target: &mut Map<String, Value>, field: &str, value: &Value, parent: &str) -> Result<(), Status> {
    if let Some(map) = value.as_object() {
        // The strategy of a list is asked for by the list that its item lies in, not by the item.
        return merge_map(object::map_of(target.entry(field).or_insert(Value::Null)), map, field);
    }
    let Some(items) = value.as_array() else {
        target.insert(field.to_owned(), value.clone());
        return Ok(());
    };
    match list_merge(parent, field) {
        ListMerge::Atomic => {
            target.insert(field.to_owned(), value.clone());
            Ok(())
        }
        ListMerge::Set => {
            let list = list_of(target, field);
            for item in items {
                if !list.contains(item) {
                    list.push(item.clone());
                }
            }
            Ok(())
        }
        ListMerge::By(key) => merge_items(list_of(target, field), items, key, field),
    }
}

fn merge_items(list: &mut Vec<Value>, items: &[Value], key: &str, field: &str) -> Result<(), Status> {
    let directive = |item: &Value| item.get("$patch").and_then(Value::as_str).map(str::to_owned);
    if items.iter().any(|item| directive(item).as_deref() == Some("replace")) {
        *list = items.iter().filter(|item| item.get(key).is_some()).map(clean).collect();
        return Ok(());
    }
    for item in items {
        let Some(id) = item.get(key) else {
            return Err(Status::bad_request(format!("map: {item} does not contain declared merge key: {key}")));
        };
        let found = list.iter().position(|known| known.get(key) == Some(id));
        match (directive(item).as_deref(), found) {
            (Some("delete"), _) => list.retain(|known| known.get(key) != Some(id)),
            (None | Some("merge"), Some(at)) => {
                let patch = item.as_object().ok_or_else(|| Status::bad_request("Invalid JSON Patch"))?;
                merge_map(object::map_of(&mut list[at]), patch, field)?;
            }
            (None | Some("merge"), None) => list.push(clean(item)),
            (Some(other), _) => return Err(unknown_directive(other)),
        }
    }
    Ok(())
}

fn unknown_directive(directive: &str) -> Status {
    Status::bad_request(format!("unknown patch type found: {directive}"))
}

fn remove_from_set(target: &mut Map<String, Value>, field: &str, values: &Value) {
    let Some(list) = target.get_mut(field).and_then(Value::as_array_mut) else { return };
    list.retain(|item| !values.as_array().is_some_and(|values| values.contains(item)));
}

fn list_of<'a>(target: &'a mut Map<String, Value>, field: &str) -> &'a mut Vec<Value> {
    let value = target.entry(field).or_insert(Value::Null);
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("the value was just made a list")
}

fn without_directives(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .filter(|(field, value)| !field.starts_with('$') && !value.is_null())
        .map(|(field, value)| (field.clone(), clean(value)))
        .collect()
}

fn clean(value: &Value) -> Value {
    if let Some(map) = value.as_object() {
        Value::Object(without_directives(map))
    } else if let Some(items) = value.as_array() {
        Value::Array(items.iter().map(clean).collect())
    } else {
        value.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_merged_by_their_keys_and_directives() {
        let object = json!({
            "metadata": {
                "ownerReferences": [{ "uid": "a", "name": "a" }, { "uid": "b", "name": "b" }],
                "finalizers": ["x", "y"],
            },
            "spec": {
                "containers": [{ "name": "main", "image": "1", "env": [{ "name": "A", "value": "1" }] }],
                "tolerations": [{ "key": "k" }],
                "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } },
            },
            "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "r" }] },
        });
        let rows = [
            (
                "an item is merged by its key",
                json!({ "metadata": { "ownerReferences": [{ "uid": "b", "controller": true }] } }),
                "/metadata/ownerReferences",
                json!([{ "uid": "a", "name": "a" }, { "uid": "b", "name": "b", "controller": true }]),
            ),
            (
                "an unknown item is appended",
                json!({ "metadata": { "ownerReferences": [{ "uid": "c" }] } }),
                "/metadata/ownerReferences/2",
                json!({ "uid": "c" }),
            ),
            (
                "an item is deleted",
                json!({ "metadata": { "ownerReferences": [{ "$patch": "delete", "uid": "a" }] } }),
                "/metadata/ownerReferences",
                json!([{ "uid": "b", "name": "b" }]),
            ),
            (
                "an absent item is deleted in vain",
                json!({ "metadata": { "ownerReferences": [{ "$patch": "delete", "uid": "z" }] } }),
                "/metadata/ownerReferences/1/uid",
                json!("b"),
            ),
            (
                "a list is replaced",
                json!({ "metadata": { "ownerReferences": [{ "$patch": "replace" }, { "uid": "c" }] } }),
                "/metadata/ownerReferences",
                json!([{ "uid": "c" }]),
            ),
            (
                "a set takes each value once",
                json!({ "metadata": { "finalizers": ["y", "z"] } }),
                "/metadata/finalizers",
                json!(["x", "y", "z"]),
            ),
            (
                "a set loses values",
                json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["x"] } }),
                "/metadata/finalizers",
                json!(["y"]),
            ),
            (
                "lists within items are merged too",
                json!({ "spec": { "containers": [{ "name": "main", "env": [{ "name": "B", "value": "2" }] }] } }),
                "/spec/containers/0",
                json!({
                    "name": "main", "image": "1",
                    "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }],
                }),
            ),
            (
                "a list without a key is replaced",
                json!({ "spec": { "tolerations": [{ "key": "l" }] } }),
                "/spec/tolerations",
                json!([{ "key": "l" }]),
            ),
            (
                "only named fields are kept",
                json!({ "spec": { "strategy": { "$retainKeys": ["type"], "type": "Recreate" } } }),
                "/spec/strategy",
                json!({ "type": "Recreate" }),
            ),
            (
                "a map is replaced",
                json!({ "spec": { "strategy": { "$patch": "replace", "type": "Recreate" } } }),
                "/spec/strategy",
                json!({ "type": "Recreate" }),
            ),
            (
                "a condition is merged by its type, and null removes",
                json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": null }] } }),
                "/status/conditions",
                json!([{ "type": "Ready", "status": "True" }]),
            ),
        ];
        for (name, patch, pointer, expected) in rows {
            let mut patched = object.clone();
            merge(&mut patched, &patch).expect("the patch is well formed");
            assert_eq!(patched.pointer(pointer), Some(&expected), "{name}");
        }
    }

    #[test]
    fn patches_that_cannot_be_applied_are_refused() {
        for patch in [
            json!([]),
            json!({ "metadata": { "ownerReferences": [{ "name": "without a uid" }] } }),
            json!({ "spec": { "$patch": "invert" } }),
        ] {
            let mut object = json!({ "spec": {} });
            assert_eq!(merge(&mut object, &patch).expect_err("it is refused").code, 400, "{patch}");
        }
    }
}
