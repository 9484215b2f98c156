//! The events of a service.

use kcm_api::views::AddressType;
use kcm_framework::events::{EventDetails, EventType};

use super::hints::allocation::Obstacle;

/// Why an event is recorded, with what its message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventReason {
    /// Slices could not be brought into line with the pods.
    Failed {
        /// Namespace and name of the service.
        service: String,
        /// The errors.
        error: String,
    },
    /// Endpoints of a family have hints by topology from now on.
    HintsEnabled(AddressType),
    /// The service does not ask for hints by topology any more.
    HintsDisabled(AddressType),
    /// Endpoints of a family cannot have hints by topology.
    NoHints(AddressType, Obstacle),
}

impl EventDetails for EventReason {
    fn event_type(&self) -> EventType {
        match self {
            Self::HintsEnabled(_) => EventType::Normal,
            Self::Failed { .. } | Self::HintsDisabled(_) | Self::NoHints(..) => EventType::Warning,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Failed { .. } => "FailedToUpdateEndpointSlices",
            Self::HintsEnabled(_) => "TopologyAwareHintsEnabled",
            Self::HintsDisabled(_) | Self::NoHints(..) => "TopologyAwareHintsDisabled",
        }
    }

    fn message(&self) -> String {
        let of_family = |message: &str, family: &AddressType| format!("{message}, addressType: {}", family.as_str());
        match self {
            Self::Failed { service, error } => format!("Error updating Endpoint Slices for Service {service}: {error}"),
            Self::HintsEnabled(family) => of_family("Topology Aware Hints has been enabled", family),
            Self::HintsDisabled(family) => of_family("Topology Aware Hints has been disabled", family),
            Self::NoHints(family, obstacle) => of_family(&obstacle.message(), family),
        }
    }
}

impl Obstacle {
    /// What upstream says of it.
    fn message(self) -> String {
        match self {
            Self::InsufficientNodeInformation => {
                "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes".to_owned()
            }
            Self::InsufficientEndpoints { endpoints, zones } => {
                format!("Insufficient number of endpoints ({endpoints} endpoints, {zones} zones)")
            }
            Self::Overload { endpoints, zones } => format!(
                "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold \
                 ({endpoints} endpoints, {zones} zones)"
            ),
            Self::NoZone => "One or more endpoints do not have a zone specified".to_owned(),
        }
    }
}
