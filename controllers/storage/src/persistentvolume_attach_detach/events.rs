//! Messages of the events on pods, equal to upstream's in bytes.

use kcm_framework::api::ObjectKey;
use kcm_framework::events::{Event, EventText};

/// Reason of the event for an attached volume.
pub(super) const ATTACHED: &str = "SuccessfulAttachVolume";
/// Reason of the event for a volume that is not attached.
pub(super) const FAILED: &str = "FailedAttachVolume";

/// A pod that uses a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodName {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl PodName {
    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(self.namespace.clone(), self.name.clone())
    }
}

/// An event on a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodEvent {
    Attached(String),
    Failed(String),
}

impl Event for PodEvent {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::Attached(message) => EventText::normal(ATTACHED, message.as_str()),
            Self::Failed(message) => EventText::warning(FAILED, message.as_str()),
        }
    }
}

/// Returns the message for an attached volume, which ends with a blank.
pub(super) fn attached(volume: &str) -> String {
    format!("AttachVolume.Attach succeeded for volume \"{volume}\" ")
}

/// Returns the message for a failed attach, with a blank before the colon.
pub(super) fn failed(volume: &str, error: &str) -> String {
    format!("AttachVolume.Attach failed for volume \"{volume}\" : {error}")
}

/// Returns the message for a pod in `namespace` that waits while `users` have the volume on other nodes.
///
/// Names of pods in other namespaces do not appear: their users may not see each other's pods.
pub(super) fn waiting(volume: &str, namespace: &str, users: &[PodName]) -> String {
    let names: Vec<_> = users.iter().filter(|pod| pod.namespace == namespace).map(|pod| pod.name.as_str()).collect();
    let others = users.len() - names.len();
    let state = match (names.is_empty(), others) {
        (true, 0) => "Volume is already exclusively attached to one node, waiting on detach before it can be attached \
                      to another node"
            .to_owned(),
        (true, others) => format!("Volume is already used by {others} pod(s) in different namespaces"),
        (false, 0) => format!("Volume is already used by pod(s) {}", names.join(", ")),
        (false, others) => {
            format!("Volume is already used by pod(s) {} and {others} pod(s) in different namespaces", names.join(", "))
        }
    };
    format!("Waiting for detach for volume \"{volume}\" {state}")
}
