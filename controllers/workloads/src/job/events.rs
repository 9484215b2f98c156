//! The events about a job.

use kcm_framework::events::{EventDetails, EventType};

use super::conditions::{Ending, JobResult};

/// Why an event is recorded, with what its message needs. Those about pods are recorded by `PodControl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JobEvent<'a> {
    /// The job was suspended.
    Suspended,
    /// The job was resumed.
    Resumed,
    /// The job has ended.
    Ended(&'a Ending),
    /// More pods succeeded than were needed.
    TooManySucceededPods,
    /// The completion mode is one of a later version.
    UnknownCompletionMode,
}

impl EventDetails for JobEvent<'_> {
    fn event_type(&self) -> EventType {
        match self {
            Self::Suspended | Self::Resumed => EventType::Normal,
            Self::Ended(ending) => match ending.result {
                JobResult::Complete => EventType::Normal,
                JobResult::Failed => EventType::Warning,
            },
            Self::TooManySucceededPods | Self::UnknownCompletionMode => EventType::Warning,
        }
    }

    fn reason(&self) -> &str {
        match self {
            Self::Suspended => "Suspended",
            Self::Resumed => "Resumed",
            Self::Ended(ending) => match ending.result {
                JobResult::Complete => "Completed",
                JobResult::Failed => &ending.reason,
            },
            Self::TooManySucceededPods => "TooManySucceededPods",
            Self::UnknownCompletionMode => "UnknownCompletionMode",
        }
    }

    fn message(&self) -> String {
        let text = match self {
            Self::Suspended => "Job suspended",
            Self::Resumed => "Job resumed",
            Self::Ended(ending) => match ending.result {
                JobResult::Complete => "Job completed",
                JobResult::Failed => &ending.message,
            },
            Self::TooManySucceededPods => "Too many succeeded pods running after completion count reached",
            Self::UnknownCompletionMode => "Skipped Job sync because completion mode is unknown",
        };
        text.to_owned()
    }
}
