//! The view of a Job.

use jiff::Timestamp;
use serde::Deserialize;

use super::pod_failure_policy::PodFailurePolicy;
use crate::condition::{Condition, ConditionStatus};
use crate::documented::Documented;
use crate::intern::InternedStr;
use crate::key::Uid;
use crate::labels::Labels;
use crate::protobuf::{Field, Kind, ProtobufType};
use crate::resource::Resource;
use crate::selector::{InvalidSelector, LabelSelector, Selector};

/// A Job with its JSON. The controller updates its status and copies its template into pods.
pub type Job = Documented<JobView>;

crate::view! {
    /// Fields of a Job that decisions read.
    pub struct JobView {
        resource: Resource::namespaced("batch", "v1", "jobs", "Job");

        "spec" @ 2 {
            let parallelism: Option<i32> = "parallelism" @ 1;
            /// `spec.parallelism`, 1 if it is absent.
            pub parallelism: i32 = parallelism.unwrap_or(1);
            /// `spec.completions`; `None` if the success of any pod completes the Job.
            pub completions: Option<i32> = "completions" @ 2;
            /// `spec.activeDeadlineSeconds`, `None` if it is absent.
            pub active_deadline_seconds: Option<i64> = "activeDeadlineSeconds" @ 3;
            let selector: Option<LabelSelector> = "selector" @ 4;
            /// `spec.selector`. The object is read even if its selector is invalid.
            pub selector: Result<Selector, InvalidSelector> = Selector::try_from(selector.as_ref());
            "template" @ 6 {
                "metadata" @ 1 {
                    /// `spec.template.metadata.labels`, empty if it is absent.
                    pub template_labels: Labels = "labels" @ 11;
                }
                "spec" @ 2 {
                    let restart_policy: InternedStr = "restartPolicy" @ 3;
                    /// Whether `spec.template.spec.restartPolicy` is `OnFailure`.
                    pub restarts_on_failure: bool = restart_policy == "OnFailure";
                }
            }
            let backoff_limit: Option<i32> = "backoffLimit" @ 7;
            /// `spec.backoffLimit`, 6 if it is absent.
            pub backoff_limit: i32 = backoff_limit.unwrap_or(6);
            /// `spec.ttlSecondsAfterFinished`, `None` if it is absent.
            pub ttl_seconds_after_finished: Option<i32> = "ttlSecondsAfterFinished" @ 8;
            /// `spec.completionMode`, `NonIndexed` if it is absent.
            pub completion_mode: CompletionMode = "completionMode" @ 9;
            /// `spec.suspend`, `false` if it is absent.
            pub suspend: bool = "suspend" @ 10;
            /// `spec.podFailurePolicy`, `None` if it is absent.
            pub pod_failure_policy: Option<Box<PodFailurePolicy>> = "podFailurePolicy" @ 11;
            /// `spec.backoffLimitPerIndex`, `None` if it is absent.
            pub backoff_limit_per_index: Option<i32> = "backoffLimitPerIndex" @ 12;
            /// `spec.maxFailedIndexes`, `None` if it is absent.
            pub max_failed_indexes: Option<i32> = "maxFailedIndexes" @ 13;
            /// Time at which failed pods are replaced: `spec.podReplacementPolicy`.
            pub pod_replacement_policy: PodReplacementPolicy = "podReplacementPolicy" @ 14;
            /// `spec.managedBy`, `None` if it is absent.
            pub managed_by: Option<InternedStr> = "managedBy" @ 15;
            "successPolicy" @ 16 {
                /// `spec.successPolicy.rules`, empty if it is absent.
                pub success_rules: Box<[SuccessPolicyRule]> = "rules" @ 1;
            }
        }
        let status: JobStatus = "status" @ 3;
        /// Result and time of the end of the Job.
        pub completion: JobCompletion = JobCompletion::of(&status.conditions);
        /// Status of the Job, from `status`.
        pub status: JobStatus = status;
    }
}

impl JobView {
    /// Returns `true` if the Job is complete or failed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.completion != JobCompletion::Unfinished
    }

    /// Returns `true` if each completion has an index.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        self.completion_mode == CompletionMode::Indexed
    }
}

/// Result and time of the end of a Job: the first condition `Complete` or `Failed` that is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobCompletion {
    /// It has not finished.
    #[default]
    Unfinished,
    /// It is complete, or failed.
    Finished {
        /// Time at which the condition became true; `None` if the condition has no time.
        at: Option<Timestamp>,
    },
}

impl JobCompletion {
    fn of(conditions: &[Condition]) -> Self {
        let ends = |condition: &&Condition| {
            condition.status == ConditionStatus::True && matches!(condition.type_.as_str(), "Complete" | "Failed")
        };
        conditions
            .iter()
            .find(ends)
            .map_or(Self::Unfinished, |condition| Self::Finished { at: condition.last_transition_time })
    }
}

/// Mode of a Job: completions with or without indexes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "InternedStr")]
pub enum CompletionMode {
    /// Completions are counted, without indexes.
    #[default]
    NonIndexed,
    /// Each completion has an index.
    Indexed,
    /// Any other string of the field.
    Other(InternedStr),
}

impl From<InternedStr> for CompletionMode {
    fn from(mode: InternedStr) -> Self {
        match mode.as_str() {
            "NonIndexed" | "" => Self::NonIndexed,
            "Indexed" => Self::Indexed,
            _ => Self::Other(mode),
        }
    }
}

impl ProtobufType for CompletionMode {
    const KIND: Kind = Kind::Text;
}

/// Time at which a Job replaces a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum PodReplacementPolicy {
    /// After it has failed.
    Failed,
    /// As soon as it is terminating or failed. This is the default.
    #[default]
    #[serde(other)]
    TerminatingOrFailed,
}

impl ProtobufType for PodReplacementPolicy {
    const KIND: Kind = Kind::Text;
}

crate::message! {
    /// A rule of a success policy.
    pub struct SuccessPolicyRule {
        /// `succeededIndexes`: the indexes that count, such as `0,2-5`.
        pub succeeded_indexes: Option<Box<str>> = "succeededIndexes" @ 1;
        /// `succeededCount`: number of indexes that must succeed.
        pub succeeded_count: Option<i32> = "succeededCount" @ 2;
    }
}

crate::message! {
    /// The status of a job.
    pub struct JobStatus {
        /// Conditions, in the order served.
        pub conditions: Box<[Condition]> = "conditions" @ 1 as Kind::List(&CONDITION);
        /// Time at which the Job was started or resumed.
        pub start_time: Option<Timestamp> = "startTime" @ 2;
        /// Time at which the Job completed; `None` if it failed.
        pub completion_time: Option<Timestamp> = "completionTime" @ 3;
        /// Number of pods that are neither finished nor terminating.
        pub active: i32 = "active" @ 4;
        /// Number of pods that succeeded, or number of indexes of an indexed Job.
        pub succeeded: i32 = "succeeded" @ 5;
        /// Number of pods that failed.
        pub failed: i32 = "failed" @ 6;
        /// The indexes that succeeded, such as `0,2-5`.
        pub completed_indexes: Box<str> = "completedIndexes" @ 7;
        /// The finished pods that are not yet counted.
        pub uncounted: UncountedTerminatedPods = "uncountedTerminatedPods" @ 8;
        /// Number of pods that are ready.
        pub ready: Option<i32> = "ready" @ 9;
        /// The indexes that failed, if each index has a back-off limit.
        pub failed_indexes: Option<Box<str>> = "failedIndexes" @ 10;
        /// Number of pods that are terminating.
        pub terminating: Option<i32> = "terminating" @ 11;
    }
}

crate::message! {
    /// The uids of finished pods that are not yet in the counters of the status.
    pub struct UncountedTerminatedPods {
        /// Uids of pods that succeeded.
        pub succeeded: Vec<Uid> = "succeeded" @ 1;
        /// Uids of pods that failed.
        pub failed: Vec<Uid> = "failed" @ 2;
    }
}

const CONDITION: Kind = Kind::One(&[
    Field::text(1, "type"),
    Field::text(2, "status"),
    Field::time(4, "lastTransitionTime"),
    Field::text(5, "reason"),
    Field::text(6, "message"),
]);
