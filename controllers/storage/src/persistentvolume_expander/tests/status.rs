//! The documents of claims.

use kcm_framework::api::Document;
use serde_json::{Value, json};

use crate::persistentvolume_expander::status::{finished, in_progress, pending, with_resizer};

const NOW: &str = "2026-01-02T12:00:00Z";
const THEN: &str = "2026-01-01T12:00:00Z";

fn document(value: &Value) -> Document {
    Document::parse(&value.to_string()).unwrap()
}

fn value(document: &Document) -> Value {
    serde_json::from_str(document.as_str()).unwrap()
}

fn condition(kind: &str, status: &str, at: &str) -> Value {
    json!({ "type": kind, "status": status, "lastTransitionTime": at })
}

fn with_conditions(conditions: &[Value]) -> Document {
    document(&json!({ "metadata": { "name": "data" }, "status": { "conditions": conditions } }))
}

/// Type, status and time of each condition.
fn conditions(document: &Document) -> Vec<String> {
    let value = value(document);
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let conditions = value["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let fields = ["type", "status", "lastTransitionTime"];
    conditions.iter().map(|condition| fields.map(|field| text(condition, field)).join(" ")).collect()
}

#[test]
fn xp_7_conditions_of_an_expansion_are_replaced_and_others_stay() {
    let old = with_conditions(&[
        condition("Unused", "True", THEN),
        condition("FileSystemResizePending", "True", THEN),
        condition("ModifyingVolume", "True", THEN),
        condition("NodeResizeError", "True", THEN),
    ]);
    let now = NOW.parse().unwrap();
    let begun = in_progress(&old, "driver", "2Gi".parse().unwrap(), now).unwrap();
    let others = [format!("Unused True {THEN}"), format!("ModifyingVolume True {THEN}")];
    assert_eq!(conditions(&begun), [&others[..], &[format!("Resizing True {NOW}")]].concat());
    let later = "2026-01-03T00:00:00Z".parse().unwrap();
    assert_eq!(in_progress(&begun, "driver", "2Gi".parse().unwrap(), later).unwrap(), begun, "a repeated step");

    let waits = pending(&begun, now).unwrap();
    let both = [format!("Resizing True {NOW}"), format!("FileSystemResizePending True {NOW}")];
    assert_eq!(conditions(&waits), [&others[..], &both].concat());
    assert_eq!(pending(&waits, later).unwrap(), waits, "a repeated step");
    assert_eq!(conditions(&finished(&waits, "2Gi".parse().unwrap(), now).unwrap()), others);
}

#[test]
fn xp_7_a_condition_that_becomes_true_has_a_new_time_in_its_place() {
    let old = with_conditions(&[condition("Resizing", "False", THEN), condition("Unused", "True", THEN)]);
    let begun = in_progress(&old, "driver", "2Gi".parse().unwrap(), NOW.parse().unwrap()).unwrap();
    assert_eq!(conditions(&begun), [format!("Resizing True {NOW}"), format!("Unused True {THEN}")]);
}

#[test]
fn xp_7_progress_and_size_are_recorded_and_forgotten() {
    let now = NOW.parse().unwrap();
    let old = document(&json!({ "metadata": { "name": "data" }, "status": { "capacity": { "storage": "1Gi" } } }));
    let begun = in_progress(&old, "vendor/driver", "2Gi".parse().unwrap(), now).unwrap();
    let status = &value(&begun)["status"];
    assert_eq!(status["allocatedResources"], json!({ "storage": "2Gi" }));
    assert_eq!(status["allocatedResourceStatuses"], json!({ "storage": "ControllerResizeInProgress" }));
    let annotations = json!({ "volume.kubernetes.io/storage-resizer": "vendor/driver" });
    assert_eq!(value(&begun)["metadata"]["annotations"], annotations);

    let waits = value(&pending(&begun, now).unwrap());
    assert_eq!(waits["status"]["allocatedResourceStatuses"], json!({ "storage": "NodeResizePending" }));
    let message = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
    assert_eq!(waits["status"]["conditions"][1]["message"], message);

    let status = &value(&finished(&begun, "2Gi".parse().unwrap(), now).unwrap())["status"];
    assert_eq!(status["capacity"], json!({ "storage": "2Gi" }));
    assert_eq!((&status["allocatedResourceStatuses"], &status["conditions"]), (&Value::Null, &Value::Null));
    assert_eq!(status["allocatedResources"], json!({ "storage": "2Gi" }), "as upstream");
}

#[test]
fn xp_7_progress_of_other_resources_stays() {
    let statuses = json!({ "storage": "ControllerResizeInProgress", "example.com/speed": "NodeResizePending" });
    let old = document(&json!({ "status": { "allocatedResourceStatuses": statuses } }));
    let finished = finished(&old, "2Gi".parse().unwrap(), NOW.parse().unwrap()).unwrap();
    assert_eq!(
        value(&finished)["status"]["allocatedResourceStatuses"],
        json!({ "example.com/speed": "NodeResizePending" })
    );
}

#[test]
fn xp_4_a_claim_that_names_its_resizer_is_as_it_was() {
    let annotations = json!({ "volume.kubernetes.io/storage-resizer": "driver", "a": "b" });
    let claim = document(&json!({ "metadata": { "name": "data", "annotations": annotations } }));
    assert_eq!(with_resizer(&claim, "driver").unwrap(), claim);
    let other = value(&with_resizer(&claim, "other").unwrap());
    assert_eq!(other["metadata"]["annotations"], json!({ "volume.kubernetes.io/storage-resizer": "other", "a": "b" }));
}
