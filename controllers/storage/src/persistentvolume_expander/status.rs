//! The documents of a claim with another progress of its expansion.

use jiff::Timestamp;
use kcm_framework::api::time::format_seconds;
use kcm_framework::api::{Document, EditError, ResourceQuantity};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

/// Annotation of a claim: who expands its volume.
const RESIZER: [&str; 3] = ["metadata", "annotations", "volume.kubernetes.io/storage-resizer"];
const CONDITIONS: [&str; 2] = ["status", "conditions"];
const STATUSES: [&str; 2] = ["status", "allocatedResourceStatuses"];
const STATUS: [&str; 3] = ["status", "allocatedResourceStatuses", "storage"];
const ALLOCATED: [&str; 3] = ["status", "allocatedResources", "storage"];
const CAPACITY: [&str; 3] = ["status", "capacity", "storage"];

const RESIZING: &str = "Resizing";
const FILE_SYSTEM_RESIZE_PENDING: &str = "FileSystemResizePending";
/// The conditions of an expansion.
const RESIZE_CONDITIONS: [&str; 4] = [RESIZING, FILE_SYSTEM_RESIZE_PENDING, "ControllerResizeError", "NodeResizeError"];

/// Names the resizer in the annotation.
pub(super) fn with_resizer(claim: &Document, resizer: &str) -> Result<Document, EditError> {
    let mut changed = claim.clone();
    changed.set(&RESIZER, resizer)?;
    Ok(changed)
}

/// The expansion has begun.
pub(super) fn in_progress(
    claim: &Document,
    resizer: &str,
    to: ResourceQuantity,
    now: Timestamp,
) -> Result<Document, EditError> {
    let mut changed = with_resizer(claim, resizer)?;
    set_conditions(&mut changed, Some((RESIZING, "")), Others::Drop, now)?;
    changed.set(&STATUS, "ControllerResizeInProgress")?;
    changed.set(&ALLOCATED, &to)?;
    Ok(changed)
}

/// The file system is for the kubelet to expand.
pub(super) fn pending(claim: &Document, now: Timestamp) -> Result<Document, EditError> {
    const MESSAGE: &str = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
    let mut changed = claim.clone();
    changed.set(&STATUS, "NodeResizePending")?;
    set_conditions(&mut changed, Some((FILE_SYSTEM_RESIZE_PENDING, MESSAGE)), Others::Keep, now)?;
    Ok(changed)
}

/// The claim has its new capacity.
pub(super) fn finished(claim: &Document, capacity: ResourceQuantity, now: Timestamp) -> Result<Document, EditError> {
    let mut changed = claim.clone();
    changed.set(&CAPACITY, &capacity)?;
    changed.remove(&STATUS)?;
    if changed.raw(&STATUSES).is_some_and(|statuses| statuses.get() == "{}") {
        changed.remove(&STATUSES)?;
    }
    set_conditions(&mut changed, None, Others::Drop, now)?;
    Ok(changed)
}

/// The conditions of an expansion that are not the new one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Keep,
    Drop,
}

/// Sets a condition of an expansion, by type and message. One that is true already keeps its time; conditions about other
/// things stay.
///
/// # Upstream
/// `MergeResizeConditionOnPVC`.
fn set_conditions(
    claim: &mut Document,
    new: Option<(&str, &str)>,
    others: Others,
    now: Timestamp,
) -> Result<(), EditError> {
    let condition = new.map(|(kind, message)| {
        let mut condition =
            json!({ "type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": format_seconds(now) });
        if !message.is_empty() {
            condition["message"] = json!(message);
        }
        to_raw_value(&condition).expect("a condition is valid JSON")
    });
    let present = claim.clone();
    let mut conditions: Vec<&RawValue> = Vec::new();
    let mut is_there = false;
    for old in present.items(&CONDITIONS)? {
        let Condition { kind, status } = serde_json::from_str(old.get()).unwrap_or_default();
        let is_new = new.is_some_and(|(new, _)| new == kind);
        if is_new {
            is_there = true;
            conditions.push(if status == "True" { old } else { condition.as_deref().unwrap_or(old) });
        } else if others == Others::Keep || !RESIZE_CONDITIONS.contains(&&*kind) {
            conditions.push(old);
        }
    }
    conditions.extend(condition.as_deref().filter(|_| !is_there));
    if conditions.is_empty() {
        return claim.remove(&CONDITIONS);
    }
    claim.set(&CONDITIONS, &conditions)
}

#[derive(Deserialize, Default)]
struct Condition {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    status: String,
}
