//! Jobs.

use serde_json::Value;

use crate::json::{at, set, set_default, text};

pub(super) fn job(job: &mut Value) {
    if at(job, &["spec", "completions"]).is_none() && at(job, &["spec", "parallelism"]).is_none() {
        set_default(job, &["spec", "completions"], 1);
    }
    // Where each index has a limit of its own, the job has none.
    if at(job, &["spec", "backoffLimitPerIndex"]).is_some() {
        set_default(job, &["spec", "backoffLimit"], i32::MAX);
    }
    if at(job, &["spec", "podFailurePolicy"]).is_some() {
        set_default(job, &["spec", "podReplacementPolicy"], "Failed");
    }
    default_labels(job);
}

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// The labels and the selector by which a new job finds its pods.
///
/// # Upstream
/// `jobStrategy.PrepareForCreate` and `generateSelector`
pub(super) fn generate_selector(job: &mut Value) {
    if at(job, &["spec", "manualSelector"]) == Some(&Value::Bool(true)) {
        return;
    }
    let uid = text(job, &["metadata", "uid"]).unwrap_or_default().to_owned();
    let name = text(job, &["metadata", "name"]).unwrap_or_default().to_owned();
    let labels = [
        ("controller-uid", &uid),
        (CONTROLLER_UID, &uid),
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
    ];
    for (label, value) in labels {
        set(job, &["spec", "template", "metadata", "labels", label], Some(value.clone().into()));
    }
    set(job, &["spec", "selector", "matchLabels", CONTROLLER_UID], Some(uid.into()));
}

/// A new job without labels gets the labels of its template.
fn default_labels(job: &mut Value) {
    let has_labels = at(job, &["metadata", "labels"]).and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    if !has_labels && let Some(labels) = at(job, &["spec", "template", "metadata", "labels"]).cloned() {
        set(job, &["metadata", "labels"], Some(labels));
    }
}
