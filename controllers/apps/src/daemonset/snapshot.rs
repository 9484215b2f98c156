//! What a plan reads: the nodes with their placement, and the pods on each.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::PartReader;
use kcm_framework::api::views::{DaemonSet, Node, Pod, PodTargetNode};

use super::creation_order::Failures;
use super::gates::Gates;
use super::placement::Placement;
use super::pods_by_node::PodsByNode;
use super::revision::CurrentRevision;

/// What a plan reads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Snapshot<'a> {
    /// The daemon set.
    pub(super) set: &'a DaemonSet,
    /// The placement of every node, by name.
    pub(super) placements: BTreeMap<&'a str, Placement<'a>>,
    /// The pods that the set controls, by node.
    pub(super) pods: PodsByNode<'a>,
    /// The revision of the present template.
    pub(super) revision: CurrentRevision,
    /// The creations that failed before.
    pub(super) failures: Arc<Failures>,
    /// The time of the plan.
    pub(super) now: Timestamp,
}

impl<'a> Snapshot<'a> {
    /// Places the set on all nodes, and groups its pods.
    pub(super) fn of(
        (set, nodes, pods): (&'a DaemonSet, &'a [Arc<Node>], &'a [Arc<Pod>]),
        targets: PartReader<PodTargetNode>,
        revision: CurrentRevision,
        failures: Arc<Failures>,
        gates: Gates,
        now: Timestamp,
    ) -> Self {
        let place = |node: &'a Arc<Node>| (node.metadata.key.name(), Placement::of(set, node, gates));
        let placements = nodes.iter().map(place).collect();
        Self { set, placements, pods: PodsByNode::of(pods, targets), revision, failures, now }
    }

    /// How many nodes should run the daemon.
    pub(super) fn desired(&self) -> i32 {
        let desired = self.placements.values().filter(|placement| placement.should_run()).count();
        i32::try_from(desired).unwrap_or(i32::MAX)
    }

    /// Whether the pod has been ready for `minReadySeconds`.
    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        pod.is_available_at(self.set.min_ready_seconds, self.now)
    }

    /// Whether a node should run the daemon; not one that does not exist.
    pub(super) fn should_run(&self, node: &str) -> bool {
        self.placements.get(node).is_some_and(|placement| placement.should_run())
    }
}
