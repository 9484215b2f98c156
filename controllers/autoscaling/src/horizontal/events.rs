//! The events of an autoscaler.

use kcm_framework::events::{EventDetails, EventType};

/// Why an event is recorded, with what its message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventReason {
    /// The scale of the target cannot be read.
    FailedGetScale(String),
    /// The scale of the target has no selector.
    SelectorRequired,
    /// The selector of the target cannot be parsed.
    InvalidSelector(String),
    /// The pods of the target belong to several autoscalers.
    AmbiguousSelector(String),
    /// A metric proposes nothing; the reason names the type of the metric.
    FailedMetric(&'static str, String),
    /// The metrics propose nothing together.
    FailedComputeMetricsReplicas(String),
    /// The target was scaled.
    SuccessfulRescale {
        /// Its replicas.
        size: i32,
        /// Why.
        reason: String,
    },
    /// The target could not be scaled.
    FailedRescale {
        /// The replicas that it should have.
        size: i32,
        /// Why.
        reason: String,
        /// The error.
        error: String,
    },
    /// The status could not be written.
    FailedUpdateStatus(String),
}

impl EventDetails for EventReason {
    fn event_type(&self) -> EventType {
        match self {
            Self::SuccessfulRescale { .. } => EventType::Normal,
            Self::FailedGetScale(_)
            | Self::SelectorRequired
            | Self::InvalidSelector(_)
            | Self::AmbiguousSelector(_)
            | Self::FailedMetric(..)
            | Self::FailedComputeMetricsReplicas(_)
            | Self::FailedRescale { .. }
            | Self::FailedUpdateStatus(_) => EventType::Warning,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::FailedGetScale(_) => "FailedGetScale",
            Self::SelectorRequired => "SelectorRequired",
            Self::InvalidSelector(_) => "InvalidSelector",
            Self::AmbiguousSelector(_) => "AmbiguousSelector",
            Self::FailedMetric(reason, _) => reason,
            Self::FailedComputeMetricsReplicas(_) => "FailedComputeMetricsReplicas",
            Self::SuccessfulRescale { .. } => "SuccessfulRescale",
            Self::FailedRescale { .. } => "FailedRescale",
            Self::FailedUpdateStatus(_) => "FailedUpdateStatus",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::SelectorRequired => "selector is required".to_owned(),
            Self::FailedGetScale(message)
            | Self::InvalidSelector(message)
            | Self::AmbiguousSelector(message)
            | Self::FailedMetric(_, message)
            | Self::FailedComputeMetricsReplicas(message)
            | Self::FailedUpdateStatus(message) => message.clone(),
            Self::SuccessfulRescale { size, reason } => format!("New size: {size}; reason: {reason}"),
            Self::FailedRescale { size, reason, error } => {
                format!("New size: {size}; reason: {reason}; error: {error}")
            }
        }
    }
}
