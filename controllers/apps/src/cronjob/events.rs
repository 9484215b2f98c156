//! The events of a CronJob.

use kcm_framework::events::{Event, EventText};

use super::missed::NeverStarts;
use super::schedule::{ParseError, UnknownTimeZone};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CronJobEvent {
    Created {
        job: String,
    },
    CreateFailed {
        error: String,
    },
    Deleted {
        job: String,
    },
    DeleteFailed {
        error: String,
    },
    /// A Job of the status has finished.
    Completed {
        job: String,
        condition: &'static str,
    },
    /// A Job of the status does not exist.
    Missing {
        job: String,
    },
    /// A Job of the CronJob runs, and the status does not have it.
    Unexpected {
        job: String,
    },
    /// No Job was started, because another one runs.
    AlreadyActive,
    /// More than a hundred starts were missed.
    TooManyMissed,
    /// The schedule has a time zone of its own.
    TimeZoneInSchedule {
        schedule: String,
    },
    UnknownTimeZone {
        name: String,
        error: UnknownTimeZone,
    },
    Unparseable {
        schedule: String,
        error: ParseError,
    },
    NeverStarts {
        schedule: String,
        error: NeverStarts,
    },
}

impl Event for CronJobEvent {
    fn text(&self) -> EventText<'_> {
        const UNSUPPORTED: &str = "is not officially supported, see \
                                   https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
        match self {
            Self::Created { job } => EventText::normal("SuccessfulCreate", format!("Created job {job}")),
            Self::CreateFailed { error } => EventText::warning("FailedCreate", format!("Error creating job: {error}")),
            Self::Deleted { job } => EventText::normal("SuccessfulDelete", format!("Deleted job {job}")),
            Self::DeleteFailed { error } => EventText::warning("FailedDelete", format!("Deleted job: {error}")),
            Self::Completed { job, condition } => {
                EventText::normal("SawCompletedJob", format!("Saw completed job: {job}, condition: {condition}"))
            }
            Self::Missing { job } => EventText::normal("MissingJob", format!("Active job went missing: {job}")),
            Self::Unexpected { job } => EventText::warning(
                "UnexpectedJob",
                format!("Saw a job that the controller did not create or forgot: {job}"),
            ),
            Self::AlreadyActive => EventText::normal(
                "JobAlreadyActive",
                "Not starting job because prior execution is running and concurrency policy is Forbid",
            ),
            Self::TooManyMissed => EventText::warning(
                "TooManyMissedTimes",
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
            ),
            Self::TimeZoneInSchedule { schedule } => EventText::warning(
                "UnsupportedSchedule",
                format!("CRON_TZ or TZ used in schedule {schedule:?} {UNSUPPORTED}"),
            ),
            Self::UnknownTimeZone { name, error } => {
                EventText::warning("UnknownTimeZone", format!("invalid timeZone: {name:?}: {error}"))
            }
            Self::Unparseable { schedule, error } => {
                EventText::warning("UnparseableSchedule", format!("unparseable schedule: {schedule:?} : {error}"))
            }
            Self::NeverStarts { schedule, error } => {
                EventText::warning("InvalidSchedule", format!("invalid schedule: {schedule} : {error}"))
            }
        }
    }
}
