//! Whether a start of a CronJob is due, by its spec and its last start alone.

use jiff::Timestamp;
use kcm_framework::api::views::CronJobView;

use super::missed::{Missed, NeverStarts, missed_starts, next_start};
use super::schedule::{ParseError, Schedule, TimeZones, UnknownTimeZone};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    /// No start is due until the CronJob changes.
    Never(NeverReason),
    NotYet(Timing),
    Now {
        at: Timestamp,
        timing: Timing,
    },
}

/// Why no start is ever due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NeverReason {
    Terminating,
    Suspended,
    UnknownTimeZone {
        name: String,
        error: UnknownTimeZone,
    },
    /// `spec.schedule` cannot be parsed.
    Unparseable {
        schedule: String,
        error: ParseError,
    },
    /// `spec.schedule` has no start.
    NeverStarts {
        schedule: String,
        error: NeverStarts,
    },
}

impl Due {
    /// The next start in the future.
    pub(super) fn next(&self) -> Option<Timestamp> {
        match self {
            Self::Never(_) => None,
            Self::NotYet(timing) | Self::Now { at: _, timing } => timing.next,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Timing {
    /// The schedule, in its time zone.
    pub(super) schedule: Schedule,
    /// The next start in the future.
    pub(super) next: Option<Timestamp>,
    /// Whether more than a hundred starts were missed.
    pub(super) missed_many: bool,
}

/// Parses the schedule of a CronJob, in the time zone of its spec.
///
/// A time zone in the schedule itself, which the API server rejects since Kubernetes 1.22, takes precedence.
pub(super) fn schedule_of(cron_job: &CronJobView, zones: &TimeZones) -> Result<Schedule, ParseError> {
    let schedule = &*cron_job.schedule;
    match cron_job.time_zone.as_deref() {
        Some(zone) if !names_time_zone(cron_job) && zones.load(zone).is_ok() => {
            Schedule::parse(&format!("TZ={zone} {schedule}"), zones)
        }
        Some(_) | None => Schedule::parse(schedule, zones),
    }
}

/// Whether the schedule itself has, or seems to have, a time zone.
pub(super) fn names_time_zone(cron_job: &CronJobView) -> bool {
    cron_job.schedule.contains("TZ")
}

/// Returns whether a start is due at `now`.
pub(super) fn due(cron_job: &CronJobView, zones: &TimeZones, now: Timestamp) -> Due {
    if cron_job.metadata.is_terminating() {
        return Due::Never(NeverReason::Terminating);
    }
    if let Some(name) = cron_job.time_zone.as_deref()
        && let Err(error) = zones.load(name)
    {
        return Due::Never(NeverReason::UnknownTimeZone { name: name.to_owned(), error });
    }
    if cron_job.suspend {
        return Due::Never(NeverReason::Suspended);
    }
    let text = || cron_job.schedule.as_str().to_owned();
    let schedule = match schedule_of(cron_job, zones) {
        Ok(schedule) => schedule,
        Err(error) => return Due::Never(NeverReason::Unparseable { schedule: text(), error }),
    };
    let missed = match missed_starts(cron_job, &schedule, now) {
        Ok(missed) => missed,
        Err(error) => return Due::Never(NeverReason::NeverStarts { schedule: text(), error }),
    };
    let next = next_start(cron_job, &schedule, now);
    match missed {
        Missed::None | Missed::Some { latest: None, are_many: _ } => {
            Due::NotYet(Timing { schedule, next, missed_many: false })
        }
        Missed::Some { latest: Some(at), are_many } => {
            Due::Now { at, timing: Timing { schedule, next, missed_many: are_many } }
        }
    }
}
