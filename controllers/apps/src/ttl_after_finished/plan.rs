//! The plan for a job: whether and when it is deleted.

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{Job, JobCompletion};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    Keep(KeepReason),
    /// The time to live ends later.
    Wait {
        until: Timestamp,
    },
    /// The time to live is over.
    Delete {
        expired_at: Timestamp,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepReason {
    NoTimeToLive,
    Unfinished,
    Terminating,
}

/// The condition of a finished Job has no transition time, so that its time to live never ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot tell when job {job} finished: its condition has no transition time")]
pub(super) struct NoFinishTime {
    job: ObjectKey,
}

/// Plans for a Job at `now`. A finish time in the future, by a clock that is ahead, counts: the Job is deleted that much
/// later.
pub(super) fn plan(job: &Job, now: Timestamp) -> Result<Plan, NoFinishTime> {
    if job.metadata.is_terminating() {
        return Ok(Plan::Keep(KeepReason::Terminating));
    }
    let Some(seconds) = job.ttl_seconds_after_finished else { return Ok(Plan::Keep(KeepReason::NoTimeToLive)) };
    let finished_at = match job.completion {
        JobCompletion::Unfinished => return Ok(Plan::Keep(KeepReason::Unfinished)),
        JobCompletion::Finished { at: None } => return Err(NoFinishTime { job: job.metadata.key.clone() }),
        JobCompletion::Finished { at: Some(at) } => at,
    };
    let time_to_live = SignedDuration::from_secs(seconds.into());
    let expires_at = finished_at.saturating_add(time_to_live).expect("a duration without months adds to any time");
    Ok(if expires_at <= now { Plan::Delete { expired_at: expires_at } } else { Plan::Wait { until: expires_at } })
}

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(self) -> String {
        match self {
            Self::Keep(KeepReason::NoTimeToLive) => "keeps the job, which has no ttlSecondsAfterFinished".to_owned(),
            Self::Keep(KeepReason::Unfinished) => "keeps the job, which has not finished".to_owned(),
            Self::Keep(KeepReason::Terminating) => "leaves the job, which is being deleted".to_owned(),
            Self::Wait { until } => format!("keeps the job until {until}, when its time to live ends"),
            Self::Delete { expired_at } => format!("deletes the job, whose time to live ended at {expired_at}"),
        }
    }
}
