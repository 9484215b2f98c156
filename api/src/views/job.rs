//! Jobs.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::conditions::RawCondition;
use crate::Resource;
use crate::decode::fold;
use crate::protobuf::{Kind, ProtobufType};

crate::view! {
    /// A job.
    pub struct Job {
        resource: Resource::namespaced("batch", "v1", "jobs", "Job");

        "spec" @ 2 {
            /// `spec.ttlSecondsAfterFinished`.
            pub ttl_seconds_after_finished: Option<i32> = "ttlSecondsAfterFinished" @ 8;
        }
        "status" @ 3 {
            /// Whether and when it finished.
            pub completion: JobCompletion = "conditions" @ 1;
        }
    }
}

/// Whether and when a job finished: the first condition `Complete` or `Failed` that is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobCompletion {
    /// It has not finished.
    #[default]
    Unfinished,
    /// It is complete, or failed.
    Finished {
        /// When the condition became true; absent where the condition has no valid time.
        at: Option<Timestamp>,
    },
}

impl ProtobufType for JobCompletion {
    const KIND: Kind = RawCondition::LIST;
}

impl<'de> Deserialize<'de> for JobCompletion {
    fn deserialize<D: Deserializer<'de>>(conditions: D) -> Result<Self, D::Error> {
        fold(conditions, Self::Unfinished, |completion, condition: RawCondition<'de>| {
            let ends = condition.is_of_type("Complete") || condition.is_of_type("Failed");
            if *completion == Self::Unfinished && ends && condition.is_true() {
                *completion = Self::Finished { at: condition.since() };
            }
        })
    }
}
