//! Jobs.

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

/// A job, whole: it is put with its status, and its template becomes that of pods.
pub type Job = Documented<JobView>;

crate::view! {
    /// What decisions read of a job.
    pub struct JobView {
        resource: Resource::namespaced("batch", "v1", "jobs", "Job");

        "spec" @ 2 {
            let parallelism: Option<i32> = "parallelism" @ 1;
            /// `spec.parallelism`, 1 where it is absent.
            pub parallelism: i32 = parallelism.unwrap_or(1);
            /// `spec.completions`; absent where the success of any pod completes the job.
            pub completions: Option<i32> = "completions" @ 2;
            /// `spec.activeDeadlineSeconds`.
            pub active_deadline_seconds: Option<i64> = "activeDeadlineSeconds" @ 3;
            let selector: Option<LabelSelector> = "selector" @ 4;
            /// `spec.selector`; one that is invalid does not keep the rest of the object from being read.
            pub selector: Result<Selector, InvalidSelector> = Selector::try_from(selector.as_ref());
            "template" @ 6 {
                "metadata" @ 1 {
                    /// `spec.template.metadata.labels`.
                    pub template_labels: Labels = "labels" @ 11;
                }
                "spec" @ 2 {
                    let restart_policy: InternedStr = "restartPolicy" @ 3;
                    /// Whether `spec.template.spec.restartPolicy` is `OnFailure`.
                    pub restarts_on_failure: bool = restart_policy == "OnFailure";
                }
            }
            let backoff_limit: Option<i32> = "backoffLimit" @ 7;
            /// `spec.backoffLimit`, 6 where it is absent.
            pub backoff_limit: i32 = backoff_limit.unwrap_or(6);
            /// `spec.ttlSecondsAfterFinished`.
            pub ttl_seconds_after_finished: Option<i32> = "ttlSecondsAfterFinished" @ 8;
            /// `spec.completionMode`.
            pub completion_mode: CompletionMode = "completionMode" @ 9;
            /// `spec.suspend`.
            pub suspend: bool = "suspend" @ 10;
            /// `spec.podFailurePolicy`.
            pub pod_failure_policy: Option<Box<PodFailurePolicy>> = "podFailurePolicy" @ 11;
            /// `spec.backoffLimitPerIndex`.
            pub backoff_limit_per_index: Option<i32> = "backoffLimitPerIndex" @ 12;
            /// `spec.maxFailedIndexes`.
            pub max_failed_indexes: Option<i32> = "maxFailedIndexes" @ 13;
            /// `spec.podReplacementPolicy`.
            pub pod_replacement_policy: PodReplacementPolicy = "podReplacementPolicy" @ 14;
            /// `spec.managedBy`.
            pub managed_by: Option<InternedStr> = "managedBy" @ 15;
            "successPolicy" @ 16 {
                /// `spec.successPolicy.rules`.
                pub success_rules: Box<[SuccessPolicyRule]> = "rules" @ 1;
            }
        }
        let status: JobStatus = "status" @ 3;
        /// Whether and when it finished.
        pub completion: JobCompletion = JobCompletion::of(&status.conditions);
        /// `status`.
        pub status: JobStatus = status;
    }
}

impl JobView {
    /// Whether the job has finished: whether it is complete or failed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.completion != JobCompletion::Unfinished
    }

    /// Whether each completion has an index.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        self.completion_mode == CompletionMode::Indexed
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
        /// When the condition became true; absent where the condition has no time.
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

/// Whether each completion of a job has an index.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "InternedStr")]
pub enum CompletionMode {
    /// Completions are counted.
    #[default]
    NonIndexed,
    /// Each completion has an index.
    Indexed,
    /// Any other string.
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

/// When a job replaces a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum PodReplacementPolicy {
    /// When it has failed.
    Failed,
    /// When it is terminating or failed; also where nothing is said.
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
        /// `succeededIndexes`: the indexes that count, as `0,2-5`.
        pub succeeded_indexes: Option<Box<str>> = "succeededIndexes" @ 1;
        /// `succeededCount`: how many have to succeed.
        pub succeeded_count: Option<i32> = "succeededCount" @ 2;
    }
}

crate::message! {
    /// The status of a job.
    pub struct JobStatus {
        /// Conditions, in the order served.
        pub conditions: Box<[Condition]> = "conditions" @ 1 as Kind::List(&CONDITION);
        /// When the job was started or resumed.
        pub start_time: Option<Timestamp> = "startTime" @ 2;
        /// When the job completed; absent also where it failed.
        pub completion_time: Option<Timestamp> = "completionTime" @ 3;
        /// How many pods are neither finished nor terminating.
        pub active: i32 = "active" @ 4;
        /// How many pods succeeded; of an indexed job, how many indexes.
        pub succeeded: i32 = "succeeded" @ 5;
        /// How many pods failed.
        pub failed: i32 = "failed" @ 6;
        /// The indexes that succeeded, as `0,2-5`.
        pub completed_indexes: Box<str> = "completedIndexes" @ 7;
        /// The finished pods that are not yet counted.
        pub uncounted: UncountedTerminatedPods = "uncountedTerminatedPods" @ 8;
        /// How many pods are ready.
        pub ready: Option<i32> = "ready" @ 9;
        /// The indexes that failed, where each has a limit of its own.
        pub failed_indexes: Option<Box<str>> = "failedIndexes" @ 10;
        /// How many pods are terminating.
        pub terminating: Option<i32> = "terminating" @ 11;
    }
}

crate::message! {
    /// The uids of finished pods that are not yet in the counters of the status.
    pub struct UncountedTerminatedPods {
        /// Those that succeeded.
        pub succeeded: Vec<Uid> = "succeeded" @ 1;
        /// Those that failed.
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
