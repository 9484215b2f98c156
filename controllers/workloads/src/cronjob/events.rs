//! The events of a cron job.

use kcm_framework::events::{EventDetails, EventType};

use super::missed::NeverStarts;
use super::schedule::{ParseError, UnknownTimeZone};

/// Why an event is recorded, with what its message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventReason {
    /// A job was created.
    Created { job: String },
    /// A job could not be created.
    CreateFailed { error: String },
    /// A job was deleted.
    Deleted { job: String },
    /// A job could not be deleted.
    DeleteFailed { error: String },
    /// A job that the status has finished.
    Completed { job: String, condition: &'static str },
    /// A job that the status has does not exist.
    Missing { job: String },
    /// A job of the cron job runs, and the status does not have it.
    Unexpected { job: String },
    /// A job was not started, as another one runs.
    AlreadyActive,
    /// More than a hundred starts were missed.
    TooManyMissed,
    /// The schedule has a time zone of its own.
    TimeZoneInSchedule { schedule: String },
    /// The time zone is not known.
    UnknownTimeZone { name: String, error: UnknownTimeZone },
    /// The schedule cannot be read.
    Unparseable { schedule: String, error: ParseError },
    /// The schedule never starts.
    NeverStarts { schedule: String, error: NeverStarts },
}

impl EventDetails for EventReason {
    fn event_type(&self) -> EventType {
        match self {
            Self::Created { .. }
            | Self::Deleted { .. }
            | Self::Completed { .. }
            | Self::Missing { .. }
            | Self::AlreadyActive => EventType::Normal,
            Self::CreateFailed { .. }
            | Self::DeleteFailed { .. }
            | Self::Unexpected { .. }
            | Self::TooManyMissed
            | Self::TimeZoneInSchedule { .. }
            | Self::UnknownTimeZone { .. }
            | Self::Unparseable { .. }
            | Self::NeverStarts { .. } => EventType::Warning,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Created { .. } => "SuccessfulCreate",
            Self::CreateFailed { .. } => "FailedCreate",
            Self::Deleted { .. } => "SuccessfulDelete",
            Self::DeleteFailed { .. } => "FailedDelete",
            Self::Completed { .. } => "SawCompletedJob",
            Self::Missing { .. } => "MissingJob",
            Self::Unexpected { .. } => "UnexpectedJob",
            Self::AlreadyActive => "JobAlreadyActive",
            Self::TooManyMissed => "TooManyMissedTimes",
            Self::TimeZoneInSchedule { .. } => "UnsupportedSchedule",
            Self::UnknownTimeZone { .. } => "UnknownTimeZone",
            Self::Unparseable { .. } => "UnparseableSchedule",
            Self::NeverStarts { .. } => "InvalidSchedule",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Created { job } => format!("Created job {job}"),
            Self::CreateFailed { error } => format!("Error creating job: {error}"),
            Self::Deleted { job } => format!("Deleted job {job}"),
            Self::DeleteFailed { error } => format!("Deleted job: {error}"),
            Self::Completed { job, condition } => format!("Saw completed job: {job}, condition: {condition}"),
            Self::Missing { job } => format!("Active job went missing: {job}"),
            Self::Unexpected { job } => format!("Saw a job that the controller did not create or forgot: {job}"),
            Self::AlreadyActive => {
                "Not starting job because prior execution is running and concurrency policy is Forbid".to_owned()
            }
            Self::TooManyMissed => {
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
                    .to_owned()
            }
            Self::TimeZoneInSchedule { schedule } => {
                let page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/";
                format!(
                    "CRON_TZ or TZ used in schedule {schedule:?} is not officially supported, see {page} for more details"
                )
            }
            Self::UnknownTimeZone { name, error } => format!("invalid timeZone: {name:?}: {error}"),
            Self::Unparseable { schedule, error } => format!("unparseable schedule: {schedule:?} : {error}"),
            Self::NeverStarts { schedule, error } => format!("invalid schedule: {schedule} : {error}"),
        }
    }
}
