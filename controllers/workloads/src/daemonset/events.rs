//! The events of a daemon set, beside those of the creation and deletion of its pods.

use kcm_framework::events::{EventDetails, EventType};

/// Why an event is recorded, with what its message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventReason {
    /// The selector of the daemon set is empty.
    SelectingAll,
    /// A failed pod is deleted.
    FailedPod(FinishedPod),
    /// A succeeded pod is deleted.
    SucceededPod(FinishedPod),
}

/// A finished pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FinishedPod {
    /// Namespace and name of the pod, with a slash.
    pub(super) pod: String,
    /// The name of the node.
    pub(super) node: String,
}

impl EventDetails for EventReason {
    fn event_type(&self) -> EventType {
        match self {
            Self::SucceededPod(_) => EventType::Normal,
            Self::SelectingAll | Self::FailedPod(_) => EventType::Warning,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::SelectingAll => "SelectingAll",
            Self::FailedPod(_) => "FailedDaemonPod",
            Self::SucceededPod(_) => "SucceededDaemonPod",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::SelectingAll => "This daemon set is selecting all pods. A non-empty selector is required.".to_owned(),
            Self::FailedPod(FinishedPod { pod, node }) => {
                format!("Found failed daemon pod {pod} on node {node}, will try to kill it")
            }
            Self::SucceededPod(FinishedPod { pod, node }) => {
                format!("Found succeeded daemon pod {pod} on node {node}, will try to delete it")
            }
        }
    }
}
