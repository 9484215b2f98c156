//! The events about Pods.

use kcm_framework::api::ObjectKey;
use kcm_framework::events::{Event, EventText};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodEvent<'a> {
    /// The Pod is evicted now.
    Marking(&'a ObjectKey),
    /// A pending eviction of the Pod does not take place.
    Cancelling(&'a ObjectKey),
}

const REASON: &str = "TaintManagerEviction";

impl Event for PodEvent<'_> {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::Marking(pod) => EventText::normal(REASON, format!("Marking for deletion Pod {pod}")),
            Self::Cancelling(pod) => EventText::normal(REASON, format!("Cancelling deletion of Pod {pod}")),
        }
    }
}
