//! The queue that a change of a quota enters.

use std::sync::Arc;

use kcm_framework::api::views::ResourceQuota;
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::quota;
use crate::resourcequota::event_mapping::{QueueName, queue_of_change};

fn made(hard: &str, status: &Value) -> Arc<ResourceQuota> {
    quota(&json!({ "hard": { "pods": hard } }), status)
}

#[test]
fn a_quota_that_blocks_creations_goes_first() {
    let done = made("5", &json!({ "hard": { "pods": "5" }, "used": { "pods": "2" } }));
    let charged = made("5", &json!({ "hard": { "pods": "5" }, "used": { "pods": "3" } }));
    let raised = made("6", &json!({ "hard": { "pods": "5" }, "used": { "pods": "2" } }));
    let unused = made("5", &json!({ "hard": { "pods": "5" } }));
    let uncounted = quota(&json!({ "hard": { "unknown": "5" } }), &json!({ "hard": { "unknown": "5" } }));
    let mismatched = made("4", &json!({ "hard": { "pods": "6" }, "used": { "pods": "0" } }));
    let new = made("5", &json!({}));
    let updated =
        |old: &Arc<ResourceQuota>, new: &Arc<ResourceQuota>| Change::Updated { old: old.clone(), new: new.clone() };
    for (name, change, expected) in [
        ("a new one", Change::Added(new.clone()), Some(QueueName::Priority)),
        ("one that lacks a usage", Change::Added(unused), Some(QueueName::Priority)),
        ("one that nothing counts", Change::Added(uncounted), Some(QueueName::Primary)),
        ("one with other limits in its status", Change::Added(mismatched), Some(QueueName::Priority)),
        ("one that is computed", Change::Added(done.clone()), Some(QueueName::Primary)),
        ("its limits change", updated(&done, &raised), Some(QueueName::Priority)),
        ("the API server charges it", updated(&done, &charged), None),
        ("it is computed", updated(&new, &done), None),
        ("a resync", updated(&done, &done), Some(QueueName::Primary)),
        ("it is gone", Change::Deleted { last: done.clone(), final_state_known: true }, None),
    ] {
        assert_eq!(queue_of_change(&change, |name| name == "pods"), expected, "{name}");
    }
}
