//! The events about endpoints.

use kcm_framework::api::ObjectKey;
use kcm_framework::events::{Event, EventText};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EndpointsEvent {
    FailedToCreate { service: ObjectKey, message: String },
    FailedToUpdate { service: ObjectKey, message: String },
}

impl Event for EndpointsEvent {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::FailedToCreate { service, message } => EventText::warning(
                "FailedToCreateEndpoint",
                format!("Failed to create endpoint for service {service}: {message}"),
            ),
            Self::FailedToUpdate { service, message } => {
                EventText::warning("FailedToUpdateEndpoint", format!("Failed to update endpoint {service}: {message}"))
            }
        }
    }
}
