//! The events of a Job. `PodControl` records the events about its Pods.

use kcm_framework::events::{Event, EventText};

use super::conditions::{Ending, JobResult};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JobEvent<'a> {
    Suspended,
    Resumed,
    Ended(&'a Ending),
    /// More Pods succeeded than were needed.
    TooManySucceededPods,
    /// The completion mode is one of a later version.
    UnknownCompletionMode,
}

impl Event for JobEvent<'_> {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::Suspended => EventText::normal("Suspended", "Job suspended"),
            Self::Resumed => EventText::normal("Resumed", "Job resumed"),
            Self::Ended(ending) => match ending.result {
                JobResult::Complete => EventText::normal("Completed", "Job completed"),
                JobResult::Failed => EventText::warning(&*ending.reason, &*ending.message),
            },
            Self::TooManySucceededPods => EventText::warning(
                "TooManySucceededPods",
                "Too many succeeded pods running after completion count reached",
            ),
            Self::UnknownCompletionMode => {
                EventText::warning("UnknownCompletionMode", "Skipped Job sync because completion mode is unknown")
            }
        }
    }
}
