//! The conditions of Nodes and Pods that are written. Pure.

use jiff::Timestamp;
use kcm_framework::api::views::{Node, NodeConditionStatus, NodeHealth, Pod};
use serde_json::{Value, json};

/// The strategic merge patch that makes the conditions of a silent Node unknown. A condition that is unknown already stays
/// as it is.
pub(super) fn unknown_status(node: &Node, health: &NodeHealth, now: Timestamp) -> Value {
    let ready = health.ready.map_or(NodeConditionStatus::Absent, |ready| ready.status);
    let conditions = [
        ("Ready", ready),
        ("MemoryPressure", health.memory_pressure),
        ("DiskPressure", health.disk_pressure),
        ("PIDPressure", health.pid_pressure),
    ];
    let now = in_seconds(now);
    let unknown = |(type_, status): (&str, NodeConditionStatus)| match status {
        NodeConditionStatus::Unknown => None,
        NodeConditionStatus::Absent => Some(json!({
            "type": type_,
            "status": "Unknown",
            "reason": "NodeStatusNeverUpdated",
            "message": "Kubelet never posted node status.",
            "lastHeartbeatTime": node.metadata.creation_timestamp,
            "lastTransitionTime": now,
        })),
        NodeConditionStatus::True | NodeConditionStatus::False | NodeConditionStatus::Other => Some(json!({
            "type": type_,
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": now,
        })),
    };
    let conditions: Vec<Value> = conditions.into_iter().filter_map(unknown).collect();
    json!({ "metadata": { "resourceVersion": node.metadata.resource_version }, "status": { "conditions": conditions } })
}

/// The strategic merge patch that makes a Pod not ready. Reason and message stay, as upstream.
pub(super) fn not_ready_status(pod: &Pod, now: Timestamp) -> Value {
    let metadata = json!({ "uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version });
    let condition = json!({ "type": "Ready", "status": "False", "lastTransitionTime": in_seconds(now) });
    json!({ "metadata": metadata, "status": { "conditions": [condition] } })
}

/// As the API serves times: whole seconds.
fn in_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
