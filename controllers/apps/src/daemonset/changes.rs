//! The pods that a reconcile creates and deletes.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::Pod;

use super::backoff::FailureKey;
use super::creation_order::Failures;
use super::events::{DaemonSetEvent, FinishedPod};

/// The most pods that one reconcile creates, and the most that it deletes.
///
/// More at once could overload the registry that the nodes pull images from.
pub(super) const BURST: usize = 250;

/// The pods to create and to delete.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct PodChanges {
    /// The nodes to create a pod for.
    pub(super) create: Vec<Creation>,
    /// The pods to delete.
    pub(super) delete: Vec<Deletion>,
    /// When the back-off of a failed pod ends; absent if no pod waits for one.
    pub(super) recheck: Option<Timestamp>,
}

/// A pod to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Creation {
    /// The node that the pod is made for.
    pub(super) node: Box<str>,
    /// Why the pod is created.
    pub(super) reason: CreateReason,
}

/// Why a pod is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CreateReason {
    /// The node should run the daemon, and has no pod.
    Missing,
    /// The old pod of the node is not available, and a new one is created beside it.
    OldUnavailable,
    /// A new pod is created beside an available old one, as `maxSurge` allows.
    Surge,
}

/// A pod to delete.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Deletion {
    /// The pod.
    pub(super) pod: Arc<Pod>,
    /// Why the pod is deleted.
    pub(super) reason: DeleteReason,
}

/// Why a pod is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeleteReason {
    /// The pod has failed; its node gets another, with back-off.
    Failed(FailureKey),
    /// The pod has succeeded on this node; a daemon runs for ever.
    Succeeded(Box<str>),
    /// The node has more pods than one.
    Surplus,
    /// The node should not run the daemon.
    NotPlaced,
    /// The pod waits for a node that does not exist, so that nothing else deletes it.
    NodeMissing,
    /// The pod has an old template and is not ready, and a new pod is there.
    OldNotReady,
    /// The pod has an old template, and a new pod is available.
    Replaced,
    /// The pod has an old template and is not available: its deletion costs nothing.
    OldUnavailable,
    /// The pod has an old template, and `maxUnavailable` allows its deletion.
    Update,
    /// The pod has an old template, on a node that should not run the daemon any more, and enough others are available.
    NotPlacedAnyMore,
}

impl PodChanges {
    /// Whether no pod is created or deleted.
    pub(super) const fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }

    /// The same with at most [`BURST`] creations and deletions, in the order after those failures.
    #[must_use]
    pub(super) fn bounded(mut self, failures: &Failures) -> Self {
        failures.arrange(&mut self.create, |creation| &creation.node);
        self.create.truncate(BURST);
        self.delete.truncate(BURST);
        self
    }

    /// Adds a creation.
    pub(super) fn create(&mut self, node: &str, reason: CreateReason) {
        self.create.push(Creation { node: node.into(), reason });
    }

    /// Adds a deletion.
    pub(super) fn delete(&mut self, pod: &Arc<Pod>, reason: DeleteReason) {
        self.delete.push(Deletion { pod: Arc::clone(pod), reason });
    }
}

impl Deletion {
    /// The event of the deletion of a finished pod.
    pub(super) fn event(&self) -> Option<DaemonSetEvent> {
        let finished = |node: &str| FinishedPod { pod: self.pod.metadata.key.to_string(), node: node.to_owned() };
        match &self.reason {
            DeleteReason::Failed(key) => Some(DaemonSetEvent::FailedPod(finished(&key.node))),
            DeleteReason::Succeeded(node) => Some(DaemonSetEvent::SucceededPod(finished(node))),
            DeleteReason::Surplus
            | DeleteReason::NotPlaced
            | DeleteReason::NodeMissing
            | DeleteReason::OldNotReady
            | DeleteReason::Replaced
            | DeleteReason::OldUnavailable
            | DeleteReason::Update
            | DeleteReason::NotPlacedAnyMore => None,
        }
    }
}
