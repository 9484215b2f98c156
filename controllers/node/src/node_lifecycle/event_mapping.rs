//! Event mapping: the Nodes and Pods that a change enqueues.

use kcm_framework::api::views::{Node, NodeConditionStatus, NodeHealth, Pod};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::Change;

/// A Node is enqueued if it is added, recreated, or has other taints, labels or conditions. A heartbeat changes none of
/// these.
pub(super) fn keys_for_node(change: &Change<Node>, health: PartReader<NodeHealth>) -> Option<ObjectKey> {
    let decides = |node| {
        let health: &NodeHealth = health.of(node);
        let ready = health.ready.map(|ready| ready.status);
        let pressures = [health.memory_pressure, health.disk_pressure, health.pid_pressure, health.network_unavailable];
        (ready, pressures, health.unschedulable)
    };
    let is_enqueued = match change {
        Change::Added(_) => true,
        Change::Updated { old, new } => {
            let is_same = (&old.metadata.uid, &old.metadata.labels, &old.taints)
                == (&new.metadata.uid, &new.metadata.labels, &new.taints);
            !is_same || decides(old) != decides(new)
        }
        Change::Deleted { .. } | Change::Undecodable { .. } => false,
    };
    is_enqueued.then(|| change.key().clone())
}

/// Returns the name of a Node whose Pods are enqueued: its condition `Ready` has become unknown.
pub(super) fn lost_node(change: &Change<Node>, health: PartReader<NodeHealth>) -> Option<&str> {
    let is_unknown = |node: &Node| is_unknown(health.of(node));
    let is_lost = match change {
        Change::Added(node) => is_unknown(node),
        Change::Updated { old, new } => is_unknown(new) && !(is_unknown(old) && old.metadata.uid == new.metadata.uid),
        Change::Deleted { .. } | Change::Undecodable { .. } => false,
    };
    is_lost.then(|| change.key().name())
}

/// A Pod is enqueued if it is ready and was added or assigned to a Node that is lost.
pub(super) fn keys_for_pod(change: &Change<Pod>, is_lost: impl Fn(&str) -> bool) -> Option<ObjectKey> {
    let pod = match change {
        Change::Added(pod) => pod,
        Change::Updated { old, new } if old.node_name != new.node_name => new,
        Change::Updated { .. } | Change::Deleted { .. } | Change::Undecodable { .. } => return None,
    };
    let is_enqueued = pod.is_ready() && pod.node_name.as_deref().is_some_and(is_lost);
    is_enqueued.then(|| pod.metadata.key.clone())
}

/// Returns `true` if the condition `Ready` is unknown.
pub(super) fn is_unknown(health: &NodeHealth) -> bool {
    health.ready.is_some_and(|ready| ready.status == NodeConditionStatus::Unknown)
}
