//! The events about Pods.

use kcm_framework::events::{Event, EventText};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodEvent {
    /// The Pod is evicted now.
    Marking,
    /// A pending eviction of the Pod does not take place.
    Cancelling,
}

impl Event for PodEvent {
    fn text(&self) -> EventText<'_> {
        let message = match self {
            Self::Marking => "Marking for deletion",
            Self::Cancelling => "Cancelling deletion",
        };
        EventText::normal("DeviceTaintManagerEviction", message)
    }
}
