//! The events about an object and its pods.

use kcm_framework::events::{EventDetails, EventType};

/// Why an event is recorded, with what its message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventReason {
    /// A pod was created.
    CreatedPod {
        /// The name of the pod.
        name: String,
    },
    /// A pod could not be created.
    CreateFailed {
        /// The message of the API server.
        message: String,
    },
    /// A pod was deleted.
    DeletedPod {
        /// The name of the pod.
        name: String,
    },
    /// A pod could not be deleted.
    DeleteFailed {
        /// The message of the API server.
        message: String,
    },
}

impl EventDetails for EventReason {
    fn event_type(&self) -> EventType {
        match self {
            Self::CreatedPod { .. } | Self::DeletedPod { .. } => EventType::Normal,
            Self::CreateFailed { .. } | Self::DeleteFailed { .. } => EventType::Warning,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::CreatedPod { .. } => "SuccessfulCreate",
            Self::CreateFailed { .. } => "FailedCreate",
            Self::DeletedPod { .. } => "SuccessfulDelete",
            Self::DeleteFailed { .. } => "FailedDelete",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::CreatedPod { name } => format!("Created pod: {name}"),
            Self::CreateFailed { message } => format!("Error creating: {message}"),
            Self::DeletedPod { name } => format!("Deleted pod: {name}"),
            Self::DeleteFailed { message } => format!("Error deleting: {message}"),
        }
    }
}
