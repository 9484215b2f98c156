//! The metadata of objects.

use kcm_api::{Labels, ObjectKey, Resource};
use serde_json::{Map, Value};

use super::{at, drop_nulls, list, text};

/// Returns `metadata.name`, or an empty string.
#[must_use]
pub fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"]).unwrap_or_default()
}

/// Returns `metadata.uid`, or an empty string.
#[must_use]
pub fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"]).unwrap_or_default()
}

/// Returns `metadata.resourceVersion`, or an empty string.
#[must_use]
pub fn version(object: &Value) -> &str {
    text(object, &["metadata", "resourceVersion"]).unwrap_or_default()
}

/// Returns `true` if the object has a `metadata.deletionTimestamp`.
#[must_use]
pub fn is_terminating(object: &Value) -> bool {
    at(object, &["metadata", "deletionTimestamp"]).is_some()
}

/// Returns the strings of `metadata.finalizers`.
#[must_use]
pub fn finalizers(object: &Value) -> Vec<&str> {
    list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str).collect()
}

/// The key of a name within a request: without its namespace for cluster-scoped resources.
pub(crate) fn key_of(resource: &Resource, namespace: Option<&str>, name: &str) -> ObjectKey {
    match namespace {
        Some(namespace) if resource.namespaced => ObjectKey::namespaced(namespace, name),
        Some(_) | None => ObjectKey::cluster_scoped(name),
    }
}

/// Takes out what the API never stores: nulls, and lists and maps of metadata that are empty.
pub(crate) fn prune(object: &mut Value) {
    drop_nulls(object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["labels", "annotations", "ownerReferences", "finalizers"] {
            let empty = metadata.get(field).is_some_and(|value| {
                value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
            });
            if empty {
                metadata.remove(field);
            }
        }
    }
}

/// The labels in the metadata of an object or a template.
#[must_use]
pub fn labels_of(object: &Value) -> Labels {
    at(object, &["metadata", "labels"]).map(read_labels).unwrap_or_default()
}

pub(crate) fn read_labels(labels: &Value) -> Labels {
    let labels = labels.as_object();
    labels.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect()
}
