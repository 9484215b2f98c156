//! What keeps pods running.

use serde_json::{Value, json};

use super::{default_text, items, pod};
use crate::json::{at, set, set_default, text};

fn template(object: &mut Value) {
    pod::template(object.get_mut("spec").and_then(|spec| spec.get_mut("template")));
}

pub(super) fn replica_set(set: &mut Value) {
    set_default(set, &["spec", "replicas"], 1);
    template(set);
}

/// Its labels and its selector are those of its template, where it has none.
pub(super) fn replication_controller(controller: &mut Value) {
    let is_empty = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
    if let Some(labels) = at(controller, &["spec", "template", "metadata", "labels"]).cloned() {
        for path in [&["spec", "selector"], &["metadata", "labels"]] {
            if at(controller, path).is_none_or(is_empty) {
                set(controller, path, Some(labels.clone()));
            }
        }
    }
    set_default(controller, &["spec", "replicas"], 1);
    template(controller);
}

pub(super) fn deployment(deployment: &mut Value) {
    set_default(deployment, &["spec", "replicas"], 1);
    set_default(deployment, &["spec", "revisionHistoryLimit"], 10);
    set_default(deployment, &["spec", "progressDeadlineSeconds"], 600);
    default_text(deployment, &["spec", "strategy", "type"], "RollingUpdate");
    if text(deployment, &["spec", "strategy", "type"]) == Some("RollingUpdate") {
        set_default(deployment, &["spec", "strategy", "rollingUpdate", "maxSurge"], "25%");
        set_default(deployment, &["spec", "strategy", "rollingUpdate", "maxUnavailable"], "25%");
    }
    template(deployment);
}

pub(super) fn stateful_set(set: &mut Value) {
    default_text(set, &["spec", "podManagementPolicy"], "OrderedReady");
    default_text(set, &["spec", "updateStrategy", "type"], "RollingUpdate");
    if text(set, &["spec", "updateStrategy", "type"]) == Some("RollingUpdate") {
        set_default(set, &["spec", "updateStrategy", "rollingUpdate", "partition"], 0);
    }
    for field in ["whenDeleted", "whenScaled"] {
        default_text(set, &["spec", "persistentVolumeClaimRetentionPolicy", field], "Retain");
    }
    set_default(set, &["spec", "replicas"], 1);
    set_default(set, &["spec", "revisionHistoryLimit"], 10);
    for claim in items(set, &["spec", "volumeClaimTemplates"]) {
        default_text(claim, &["kind"], "PersistentVolumeClaim");
        default_text(claim, &["apiVersion"], "v1");
        default_text(claim, &["status", "phase"], "Pending");
        super::storage::claim(claim);
    }
    template(set);
}

pub(super) fn daemon_set(set: &mut Value) {
    default_text(set, &["spec", "updateStrategy", "type"], "RollingUpdate");
    if text(set, &["spec", "updateStrategy", "type"]) == Some("RollingUpdate") {
        set_default(set, &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"], 1);
        set_default(set, &["spec", "updateStrategy", "rollingUpdate", "maxSurge"], 0);
    }
    set_default(set, &["spec", "revisionHistoryLimit"], 10);
    template(set);
}

/// The annotation by which old clients tell templates of daemon sets apart.
pub(super) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Writes the count of templates so far.
pub(super) fn count_templates(set: &mut Value, count: i64) {
    let mut annotations = at(set, &["metadata", "annotations"]).cloned().unwrap_or_else(|| json!({}));
    annotations[TEMPLATE_GENERATION] = count.to_string().into();
    crate::json::set(set, &["metadata", "annotations"], Some(annotations));
}
