//! Conditions of jobs, and how a job ends.

use jiff::Timestamp;
use kcm_framework::api::views::JobStatus;
use kcm_framework::api::{Condition, ConditionStatus, InternedStr};

const SUSPENDED: &str = "Suspended";

/// Whether a job completes or fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobResult {
    /// It completes.
    Complete,
    /// It fails.
    Failed,
}

impl JobResult {
    /// The condition of a job that will end so, and waits for its pods.
    pub(super) const fn interim_condition(self) -> &'static str {
        match self {
            Self::Complete => "SuccessCriteriaMet",
            Self::Failed => "FailureTarget",
        }
    }

    /// The condition of a job that has ended so.
    pub(super) const fn final_condition(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::Failed => "Failed",
        }
    }
}

/// How and why a job ends. Both of its conditions have this reason and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    /// Whether it completes or fails.
    pub(super) result: JobResult,
    /// The reason.
    pub(super) reason: InternedStr,
    /// The message.
    pub(super) message: Box<str>,
}

impl Ending {
    pub(super) fn new(result: JobResult, reason: &str, message: impl Into<Box<str>>) -> Self {
        Self { result, reason: reason.into(), message: message.into() }
    }

    /// The end that the status announces: an interim condition that is true. A success has precedence.
    pub(super) fn announced(status: &JobStatus) -> Option<Self> {
        [JobResult::Complete, JobResult::Failed].into_iter().find_map(|result| {
            let condition = find(status, result.interim_condition())?;
            (condition.status == ConditionStatus::True).then(|| Self {
                result,
                reason: condition.reason.clone(),
                message: condition.message.clone(),
            })
        })
    }

    /// Sets the interim condition, which does not change once it is true.
    pub(super) fn announce(&self, status: &mut JobStatus, now: Timestamp) {
        let type_ = self.result.interim_condition();
        if find(status, type_).is_none_or(|condition| condition.status != ConditionStatus::True) {
            self.set(status, type_, now);
        }
    }

    /// Sets the final condition and, of a job that completes, the time.
    pub(super) fn finish(&self, status: &mut JobStatus, now: Timestamp) {
        self.set(status, self.result.final_condition(), now);
        match self.result {
            JobResult::Complete => status.completion_time = Some(now),
            JobResult::Failed => {}
        }
    }

    fn set(&self, status: &mut JobStatus, type_: &str, now: Timestamp) {
        ensure(status, &condition(type_, ConditionStatus::True, &self.reason, &self.message, now));
    }
}

/// Sets the condition `Suspended`, which a job that was never suspended lacks. Returns whether it changed.
pub(super) fn set_suspended(status: &mut JobStatus, suspended: bool, now: Timestamp) -> bool {
    ensure(
        status,
        &if suspended {
            condition(SUSPENDED, ConditionStatus::True, "JobSuspended", "Job suspended", now)
        } else {
            condition(SUSPENDED, ConditionStatus::False, "JobResumed", "Job resumed", now)
        },
    )
}

fn condition(type_: &str, status: ConditionStatus, reason: &str, message: &str, now: Timestamp) -> Condition {
    Condition {
        type_: type_.into(),
        status,
        last_transition_time: Some(now),
        reason: reason.into(),
        message: message.into(),
        ..Condition::default()
    }
}

fn find<'a>(status: &'a JobStatus, type_: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == type_)
}

/// Replaces the condition of that type, in its place, where status, reason or message differ, or appends it. A condition
/// that does not hold is not appended.
fn ensure(status: &mut JobStatus, condition: &Condition) -> bool {
    let is_same = |other: &Condition| {
        other.status == condition.status && other.reason == condition.reason && other.message == condition.message
    };
    if let Some(present) = status.conditions.iter_mut().find(|present| present.type_ == condition.type_) {
        if is_same(present) {
            return false;
        }
        *present = condition.clone();
        return true;
    }
    if condition.status == ConditionStatus::False {
        return false;
    }
    status.conditions = status.conditions.iter().chain([condition]).cloned().collect();
    true
}
