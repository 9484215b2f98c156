//! The events about an object and its pods.

use kcm_framework::events::{Event, EventText};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodControlEvent {
    CreatedPod { name: String },
    CreateFailed { message: String },
    DeletedPod { name: String },
    DeleteFailed { message: String },
}

impl Event for PodControlEvent {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::CreatedPod { name } => EventText::normal("SuccessfulCreate", format!("Created pod: {name}")),
            Self::CreateFailed { message } => EventText::warning("FailedCreate", format!("Error creating: {message}")),
            Self::DeletedPod { name } => EventText::normal("SuccessfulDelete", format!("Deleted pod: {name}")),
            Self::DeleteFailed { message } => EventText::warning("FailedDelete", format!("Error deleting: {message}")),
        }
    }
}
