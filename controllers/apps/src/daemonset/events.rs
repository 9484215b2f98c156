//! The events of a `DaemonSet`, beside the events of the creation and deletion of its pods.

use kcm_framework::events::{Event, EventText};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DaemonSetEvent {
    /// The selector is empty.
    SelectingAll,
    /// A failed pod is deleted.
    FailedPod(FinishedPod),
    /// A succeeded pod is deleted.
    SucceededPod(FinishedPod),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FinishedPod {
    /// Namespace and name of the pod, with a slash.
    pub(super) pod: String,
    /// The name of the node.
    pub(super) node: String,
}

impl Event for DaemonSetEvent {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::SelectingAll => EventText::warning(
                "SelectingAll",
                "This daemon set is selecting all pods. A non-empty selector is required.",
            ),
            Self::FailedPod(FinishedPod { pod, node }) => EventText::warning(
                "FailedDaemonPod",
                format!("Found failed daemon pod {pod} on node {node}, will try to kill it"),
            ),
            Self::SucceededPod(FinishedPod { pod, node }) => EventText::normal(
                "SucceededDaemonPod",
                format!("Found succeeded daemon pod {pod} on node {node}, will try to delete it"),
            ),
        }
    }
}
