//! The document of a claim with another condition.

use kcm_framework::api::Document;
use serde_json::{Value, json};

use crate::persistentvolumeclaim_protection::condition::with_unused;

fn changed(conditions: Option<Value>, is_unused: bool) -> Value {
    let mut claim = json!({ "metadata": { "name": "data" }, "status": { "phase": "Bound", "unknown": 1 } });
    if let Some(conditions) = conditions {
        claim["status"]["conditions"] = conditions;
    }
    let document = Document::parse(&claim.to_string()).unwrap();
    let changed = with_unused(&document, is_unused, "2026-01-02T03:04:05.6Z".parse().unwrap()).unwrap();
    let changed: Value = serde_json::from_str(changed.as_str()).unwrap();
    assert_eq!(changed["status"]["unknown"], 1, "other fields stay");
    changed["status"]["conditions"].clone()
}

#[test]
fn a_new_condition_comes_last_and_a_changed_one_keeps_its_place() {
    let unused = json!({
        "type": "Unused",
        "status": "True",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        "reason": "NoPodsUsingPVC",
        "message": "No pods are currently referencing this PVC",
    });
    let used = json!({
        "type": "Unused",
        "status": "False",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        "reason": "PodUsingPVC",
        "message": "A pod is currently referencing this PVC",
    });
    let (resizing, old) =
        (json!({ "type": "Resizing", "status": "True", "x": 1 }), json!({ "type": "Unused", "status": "True" }));
    assert_eq!(changed(None, true), json!([unused]));
    assert_eq!(changed(Some(json!([resizing])), true), json!([resizing, unused]));
    assert_eq!(changed(Some(json!([old, resizing])), false), json!([used, resizing]));
}
