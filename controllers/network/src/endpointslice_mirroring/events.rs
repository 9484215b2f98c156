//! The events of endpoints.

use kcm_framework::events::{EventDetails, EventType};

/// Why an event is recorded, with what its message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventReason {
    /// Addresses are no IP addresses.
    InvalidAddresses {
        /// How many of them.
        count: usize,
    },
    /// A subset has more addresses than are mirrored.
    TooManyAddresses {
        /// How many are mirrored of a subset.
        max: usize,
        /// How many are not mirrored.
        skipped: usize,
    },
}

impl EventDetails for EventReason {
    fn event_type(&self) -> EventType {
        EventType::Warning
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::InvalidAddresses { .. } => "InvalidIPAddress",
            Self::TooManyAddresses { .. } => "TooManyAddressesToMirror",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::InvalidAddresses { count } => {
                format!("Skipped {count} invalid IP addresses when mirroring to EndpointSlices")
            }
            Self::TooManyAddresses { max, skipped } => format!(
                "A max of {max} addresses can be mirrored to EndpointSlices per Endpoints subset. {skipped} addresses were \
                 skipped"
            ),
        }
    }
}
