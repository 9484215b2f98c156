//! What people are told about a replica set, as events.

use kcm_framework::events::EventType;

/// One thing worth telling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// A pod was created.
    CreatedPod {
        /// Its name.
        name: String,
    },
    /// A pod could not be created.
    CreateFailed {
        /// What the API server said.
        message: String,
    },
    /// A pod was deleted.
    DeletedPod {
        /// Its name.
        name: String,
    },
    /// A pod could not be deleted.
    DeleteFailed {
        /// What the API server said.
        message: String,
    },
}

impl Notice {
    /// Whether it is as expected.
    pub(super) const fn event_type(&self) -> EventType {
        match self {
            Self::CreatedPod { .. } | Self::DeletedPod { .. } => EventType::Normal,
            Self::CreateFailed { .. } | Self::DeleteFailed { .. } => EventType::Warning,
        }
    }

    /// The reason of the event.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::CreatedPod { .. } => "SuccessfulCreate",
            Self::CreateFailed { .. } => "FailedCreate",
            Self::DeletedPod { .. } => "SuccessfulDelete",
            Self::DeleteFailed { .. } => "FailedDelete",
        }
    }

    /// The text of the event.
    pub(super) fn message(&self) -> String {
        match self {
            Self::CreatedPod { name } => format!("Created pod: {name}"),
            Self::CreateFailed { message } => format!("Error creating: {message}"),
            Self::DeletedPod { name } => format!("Deleted pod: {name}"),
            Self::DeleteFailed { message } => format!("Error deleting: {message}"),
        }
    }
}
