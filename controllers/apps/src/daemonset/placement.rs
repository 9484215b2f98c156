//! Placement: whether the daemon of a set runs on a node.

use kcm_framework::api::views::{DaemonSetView, Node, Taint};

use super::gates::Gates;
use super::tolerations::is_tolerated;

/// Whether the daemon of a set runs on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement<'n> {
    /// The node should run the daemon.
    Run,
    /// A pod that is there stays, and none is created: the daemon does not tolerate a taint, which evicts nothing.
    Keep {
        /// The taint.
        taint: &'n Taint,
    },
    /// The node should not run the daemon: pods that are there are deleted.
    Leave(LeaveReason<'n>),
}

/// Why a node should not run the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaveReason<'n> {
    /// The template names another node.
    OtherNode,
    /// The node selector or the required node affinity of the template does not select it.
    NotSelected,
    /// The daemon does not tolerate a taint that evicts pods.
    Taint(&'n Taint),
}

impl<'n> Placement<'n> {
    /// Decides on one node.
    ///
    /// # Upstream
    /// `NodeShouldRunDaemonPod`. Whether the node has room is for the scheduler to decide.
    pub(super) fn of(set: &DaemonSetView, node: &'n Node, gates: Gates) -> Self {
        let name = node.metadata.key.name();
        if set.node_name.as_deref().is_some_and(|wanted| wanted != name) {
            return Self::Leave(LeaveReason::OtherNode);
        }
        if !set.node_affinity.matches(name, &node.metadata.labels) {
            return Self::Leave(LeaveReason::NotSelected);
        }
        let untolerated = |taint: &&Taint| !is_tolerated(set, taint, gates.comparison);
        if let Some(taint) = node.taints.iter().filter(|taint| taint.evicts()).find(untolerated) {
            return Self::Leave(LeaveReason::Taint(taint));
        }
        match node.taints.iter().filter(|taint| taint.prevents_scheduling()).find(untolerated) {
            Some(taint) => Self::Keep { taint },
            None => Self::Run,
        }
    }

    /// Whether a pod is created where there is none.
    pub(super) const fn should_run(self) -> bool {
        matches!(self, Self::Run)
    }

    /// Whether a pod that is there stays.
    pub(super) const fn may_stay(self) -> bool {
        matches!(self, Self::Run | Self::Keep { .. })
    }
}
