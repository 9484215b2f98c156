//! The conditions that are written.

use jiff::Timestamp;
use kcm_framework::api::View as _;
use kcm_framework::api::views::Pod;
use serde_json::{Value, json};

use super::{health_reader, node_view, node_with};
use crate::node_lifecycle::status::{not_ready_status, unknown_status};

fn now() -> Timestamp {
    "2026-01-02T12:00:00.7Z".parse().unwrap()
}

/// Types of the conditions that are written, with their reasons.
fn check(conditions: &[(&str, &str)]) -> Vec<(String, String)> {
    let node = node_view(&node_with(conditions, &json!([])));
    let patch = unknown_status(&node, health_reader().of(&node), now());
    assert_eq!(patch["metadata"], json!({ "resourceVersion": "7" }));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let written = patch["status"]["conditions"].as_array().unwrap().clone();
    written.iter().map(|condition| (text(&condition["type"]), text(&condition["reason"]))).collect()
}

#[test]
fn s32_conditions_become_unknown_unless_they_are() {
    let pair = |type_: &str, reason: &str| (type_.to_owned(), reason.to_owned());
    let (never, stopped) = ("NodeStatusNeverUpdated", "NodeStatusUnknown");
    let all = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
    assert_eq!(check(&[]), all.map(|type_| pair(type_, never)));
    let reported =
        [("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False")];
    assert_eq!(check(&reported), all.map(|type_| pair(type_, stopped)));
    let some = [("Ready", "False"), ("MemoryPressure", "Unknown"), ("NetworkUnavailable", "False")];
    let expected = [pair("Ready", stopped), pair("DiskPressure", never), pair("PIDPressure", never)];
    assert_eq!(check(&some), expected);
}

#[test]
fn s32_a_condition_is_written_as_upstream_writes_it() {
    let node = node_view(&node_with(&[("Ready", "True")], &json!([])));
    let patch = unknown_status(&node, health_reader().of(&node), now());
    let ready = json!({
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": "2026-01-02T12:00:00Z",
    });
    let pressure = json!({
        "type": "MemoryPressure",
        "status": "Unknown",
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-02T12:00:00Z",
    });
    assert_eq!(patch["status"]["conditions"].as_array().unwrap()[..2], [ready, pressure]);
}

#[test]
fn s34_a_pod_is_made_not_ready_at_its_version() {
    let pod = json!({ "metadata": { "namespace": "shop", "name": "a", "uid": "u", "resourceVersion": "9" } });
    let patch = not_ready_status(&Pod::decode(&pod.to_string()).unwrap(), now());
    let expected = json!({
        "metadata": { "uid": "u", "resourceVersion": "9" },
        "status": {
            "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": "2026-01-02T12:00:00Z" }],
        },
    });
    assert_eq!(patch, expected);
}
