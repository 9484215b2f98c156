//! The events about endpoints.

use kcm_api::ObjectKey;
use kcm_framework::events::{EventDetails, EventType};

/// Why an event is recorded, with what its message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventReason {
    /// Endpoints could not be created.
    FailedToCreate {
        /// Namespace and name of the service.
        service: ObjectKey,
        /// The message of the API server.
        message: String,
    },
    /// Endpoints could not be updated.
    FailedToUpdate {
        /// Namespace and name of the service.
        service: ObjectKey,
        /// The message of the API server.
        message: String,
    },
}

impl EventDetails for EventReason {
    fn event_type(&self) -> EventType {
        match self {
            Self::FailedToCreate { .. } | Self::FailedToUpdate { .. } => EventType::Warning,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::FailedToCreate { .. } => "FailedToCreateEndpoint",
            Self::FailedToUpdate { .. } => "FailedToUpdateEndpoint",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::FailedToCreate { service, message } => {
                format!("Failed to create endpoint for service {service}: {message}")
            }
            Self::FailedToUpdate { service, message } => format!("Failed to update endpoint {service}: {message}"),
        }
    }
}
