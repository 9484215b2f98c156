//! The events of a `HorizontalPodAutoscaler`.

use kcm_framework::events::{Event, EventText};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AutoscalerEvent {
    /// The autoscaler cannot be decoded.
    FailedDecode(String),
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
    SuccessfulRescale { size: i32, reason: String },
    /// The target could not be scaled.
    FailedRescale { size: i32, reason: String, error: String },
    /// The status could not be written.
    FailedUpdateStatus(String),
}

impl Event for AutoscalerEvent {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::FailedDecode(error) => {
                let message = format!("the autoscaler cannot be decoded, so that it is not synced: {error}");
                EventText::warning("FailedDecode", message)
            }
            Self::FailedGetScale(message) => EventText::warning("FailedGetScale", message),
            Self::SelectorRequired => EventText::warning("SelectorRequired", "selector is required"),
            Self::InvalidSelector(message) => EventText::warning("InvalidSelector", message),
            Self::AmbiguousSelector(message) => EventText::warning("AmbiguousSelector", message),
            Self::FailedMetric(reason, message) => EventText::warning(*reason, message),
            Self::FailedComputeMetricsReplicas(message) => EventText::warning("FailedComputeMetricsReplicas", message),
            Self::SuccessfulRescale { size, reason } => {
                EventText::normal("SuccessfulRescale", format!("New size: {size}; reason: {reason}"))
            }
            Self::FailedRescale { size, reason, error } => {
                let message = format!("New size: {size}; reason: {reason}; error: {error}");
                EventText::warning("FailedRescale", message)
            }
            Self::FailedUpdateStatus(message) => EventText::warning("FailedUpdateStatus", message),
        }
    }
}
