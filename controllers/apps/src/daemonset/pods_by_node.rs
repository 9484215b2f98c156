//! The pods of a daemon set by the nodes that they run on, or are made for.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::PartReader;
use kcm_framework::api::views::{Pod, PodTargetNode};

use super::revision::CurrentRevision;

/// The pods of each node. Scheduled pods come first, then older ones.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodsByNode<'a>(BTreeMap<&'a str, Vec<&'a Arc<Pod>>>);

impl<'a> PodsByNode<'a> {
    /// Groups the pods that the set controls.
    ///
    /// A finished pod that is being deleted does not count: its node needs another. Neither does a pod without a node,
    /// which was not created by this controller.
    pub(super) fn of(pods: &'a [Arc<Pod>], targets: PartReader<PodTargetNode>) -> Self {
        let mut nodes: BTreeMap<&str, Vec<&Arc<Pod>>> = BTreeMap::new();
        for pod in pods.iter().filter(|pod| !(pod.is_finished() && pod.metadata.is_terminating())) {
            if let Some(node) = node_of(pod, targets) {
                nodes.entry(node).or_default().push(pod);
            }
        }
        for pods in nodes.values_mut() {
            pods.sort_unstable_by_key(|pod| {
                (pod.node_name.is_none(), pod.metadata.creation_timestamp, pod.metadata.key.name())
            });
        }
        Self(nodes)
    }

    /// The pods of a node.
    pub(super) fn on(&self, node: &str) -> &[&'a Arc<Pod>] {
        self.0.get(node).map_or(&[], Vec::as_slice)
    }

    /// Every node with a pod, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &[&'a Arc<Pod>])> {
        self.0.iter().map(|(node, pods)| (*node, pods.as_slice()))
    }
}

/// The node that a pod runs on, or is made for.
///
/// # Upstream
/// `util.GetTargetNodeName`.
pub(super) fn node_of(pod: &Pod, targets: PartReader<PodTargetNode>) -> Option<&str> {
    pod.node_name.as_ref().or(targets.of(pod).target_node.as_ref()).map(|name| &**name)
}

/// The pods of one node that are not being deleted, by revision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NodePods<'a> {
    /// The pod of the current revision.
    pub(super) new: Option<&'a Arc<Pod>>,
    /// The pod of an earlier revision.
    pub(super) old: Option<&'a Arc<Pod>>,
}

impl<'a> NodePods<'a> {
    /// Absent for a node with several pods of one kind, of which all but one are deleted first.
    pub(super) fn of(pods: &[&'a Arc<Pod>], revision: &CurrentRevision) -> Option<Self> {
        let mut node = Self { new: None, old: None };
        for pod in pods.iter().filter(|pod| !pod.metadata.is_terminating()) {
            let place = if revision.is_of(pod) { &mut node.new } else { &mut node.old };
            if place.replace(pod).is_some() {
                return None;
            }
        }
        Some(node)
    }
}

/// Returns the time at which the next pod becomes available, of which no event tells; `None` if no pod waits for
/// `minReadySeconds`.
pub(super) fn next_availability<'a>(
    pods: impl IntoIterator<Item = &'a Arc<Pod>>,
    min_ready_seconds: i32,
    now: Timestamp,
) -> Option<Timestamp> {
    let period = jiff::SignedDuration::from_secs(min_ready_seconds.into());
    let waiting = pods.into_iter().filter(|pod| pod.is_ready() && !pod.is_available_at(min_ready_seconds, now));
    // A pod without the time at which it became ready never becomes available.
    waiting.filter_map(|pod| pod.ready_since()?.checked_add(period).ok()).min()
}
