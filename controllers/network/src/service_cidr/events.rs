//! The event about a service CIDR.

use kcm_framework::events::{EventDetails, EventType};

/// The condition of a service CIDR that is in use could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConditionNotWritten;

impl EventDetails for ConditionNotWritten {
    fn event_type(&self) -> EventType {
        EventType::Warning
    }

    fn reason(&self) -> &'static str {
        "KubernetesServiceCIDRError"
    }

    fn message(&self) -> String {
        "The ServiceCIDR Status can not be set to Ready=True".to_owned()
    }
}
