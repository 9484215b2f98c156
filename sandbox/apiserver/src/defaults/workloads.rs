//! Replication controllers and daemon sets.

use serde_json::{Value, json};

use crate::json::{at, set};

/// Without labels or selector, the controller gets the labels of its template.
pub(super) fn replication_controller(controller: &mut Value) {
    let is_empty = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
    if let Some(labels) = at(controller, &["spec", "template", "metadata", "labels"]).cloned() {
        for path in [&["spec", "selector"], &["metadata", "labels"]] {
            if at(controller, path).is_none_or(is_empty) {
                set(controller, path, Some(labels.clone()));
            }
        }
    }
}

/// The annotation that counts the templates of a daemon set, for old clients.
pub(super) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Writes the count of templates so far.
pub(super) fn count_templates(daemon_set: &mut Value, count: i64) {
    let mut annotations = at(daemon_set, &["metadata", "annotations"]).cloned().unwrap_or_else(|| json!({}));
    annotations[TEMPLATE_GENERATION] = count.to_string().into();
    set(daemon_set, &["metadata", "annotations"], Some(annotations));
}
