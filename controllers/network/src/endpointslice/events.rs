//! The events about a service.

use kcm_framework::api::views::AddressType;
use kcm_framework::events::{Event, EventText};

use super::hints::allocation::Obstacle;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServiceEvent {
    /// Slices could not be written, or pods were left out.
    Failed { service: String, error: String },
    /// Endpoints of a family have hints by topology from now on.
    HintsEnabled(AddressType),
    /// The service does not ask for hints by topology any more.
    HintsDisabled(AddressType),
    /// Endpoints of a family cannot have hints by topology.
    NoHints(AddressType, Obstacle),
}

impl Event for ServiceEvent {
    fn text(&self) -> EventText<'_> {
        let of_family = |message: &str, family: &AddressType| format!("{message}, addressType: {}", family.as_str());
        match self {
            Self::Failed { service, error } => EventText::warning(
                "FailedToUpdateEndpointSlices",
                format!("Error updating Endpoint Slices for Service {service}: {error}"),
            ),
            Self::HintsEnabled(family) => EventText::normal(
                "TopologyAwareHintsEnabled",
                of_family("Topology Aware Hints has been enabled", family),
            ),
            Self::HintsDisabled(family) => EventText::warning(
                "TopologyAwareHintsDisabled",
                of_family("Topology Aware Hints has been disabled", family),
            ),
            Self::NoHints(family, obstacle) => {
                EventText::warning("TopologyAwareHintsDisabled", of_family(&obstacle.message(), family))
            }
        }
    }
}

impl Obstacle {
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
