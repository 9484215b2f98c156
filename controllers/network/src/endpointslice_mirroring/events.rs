//! The events about endpoints.

use kcm_framework::events::{Event, EventText};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EndpointsEvent {
    /// So many addresses are no IP addresses.
    InvalidAddresses { count: usize },
    /// A subset has more addresses than `max`; `skipped` addresses are not mirrored.
    TooManyAddresses { max: usize, skipped: usize },
}

impl Event for EndpointsEvent {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::InvalidAddresses { count } => EventText::warning(
                "InvalidIPAddress",
                format!("Skipped {count} invalid IP addresses when mirroring to EndpointSlices"),
            ),
            Self::TooManyAddresses { max, skipped } => EventText::warning(
                "TooManyAddressesToMirror",
                format!(
                    "A max of {max} addresses can be mirrored to EndpointSlices per Endpoints subset. {skipped} addresses \
                     were skipped"
                ),
            ),
        }
    }
}
