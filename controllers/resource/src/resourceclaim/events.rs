//! The events about Pods and groups.

use kcm_framework::events::{Event, EventText};

use super::error::EntryError;

const REASON: &str = "FailedResourceClaimCreation";

/// The claim of an entry could not be created.
#[derive(Debug, Clone, Copy)]
pub(super) enum FailedCreation<'a> {
    OfPod { entry: &'a str, error: &'a EntryError },
    OfGroup { entry: &'a str, error: &'a EntryError },
}

impl Event for FailedCreation<'_> {
    fn text(&self) -> EventText<'_> {
        let message = match self {
            Self::OfPod { entry, error } => format!("PodResourceClaim {entry}: {error}"),
            Self::OfGroup { entry, error } => format!("PodGroupResourceClaim {entry}: {error}"),
        };
        EventText::warning(REASON, message)
    }
}
