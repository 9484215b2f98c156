//! The plan for a cron job: which job is started, and what changes in the status.

use jiff::{SignedDuration, Timestamp};
use kcm_api::Uid;
use kcm_api::views::{ActiveJob, ConcurrencyPolicy, CronJobView};

use super::due::{Due, NeverReason, Timing, names_time_zone};
use super::events::EventReason;
use super::observe::{Finished, Observed, OwnedJob};
use super::status::StatusUpdate;

/// A start is reconciled so much later, as clocks differ a little.
///
/// # Upstream
/// `nextScheduleDelta`.
const PAD: SignedDuration = SignedDuration::from_millis(100);

/// The plan for a cron job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// Whether a job is started, and why not.
    pub(super) decision: Decision,
    /// The status without the job that is started.
    pub(super) status: StatusUpdate,
    /// The events, other than those of requests.
    pub(super) events: Vec<EventReason>,
    /// The next start.
    pub(super) next: Option<Timestamp>,
}

/// Whether a job is started, and why not.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    /// No start is ever due.
    Never(NeverReason),
    /// No start is due.
    NotYet,
    /// The job of the start was started before.
    AlreadyStarted {
        /// When it was due.
        at: Timestamp,
    },
    /// The job of the start exists, and the status does not have it: it was created, and the status was not written.
    Record {
        /// When it was due.
        at: Timestamp,
        /// The job.
        job: OwnedJob,
    },
    /// Another job runs, and the concurrency policy is `Forbid`.
    StillActive {
        /// When it was due.
        at: Timestamp,
    },
    /// A job is started.
    Start {
        /// When it was due.
        at: Timestamp,
        /// The jobs that are deleted first, as the concurrency policy is `Replace`.
        replaced: Vec<ActiveJob>,
    },
}

/// The name of the job of a start: there is one for each minute, so that it is not created twice.
pub(super) fn job_name(cron_job: &CronJobView, at: Timestamp) -> String {
    format!("{}-{}", cron_job.metadata.key.name(), minute(at))
}

fn minute(at: Timestamp) -> i64 {
    at.as_second() / 60
}

/// When a start is reconciled.
pub(super) fn reconciled_at(start: Timestamp) -> Timestamp {
    start.saturating_add(PAD).expect("a duration without months adds to any time")
}

/// Plans for a cron job, of whose jobs these were just `deleted`; active jobs of the status that do not exist are `missing`.
pub(super) fn plan(observed: &Observed, due: Due, deleted: &[Uid], missing: &[Uid]) -> Plan {
    let cron_job = &*observed.cron_job;
    let mut active: Vec<ActiveJob> = cron_job.status.active.to_vec();
    active.retain(|job| !deleted.contains(&job.uid));
    let mut last_successful_time = cron_job.status.last_successful_time;
    let mut events = Vec::new();
    for job in &observed.jobs {
        let Some(finished) = job.finished else { continue };
        let before = active.len();
        active.retain(|active| active.uid != job.metadata.uid);
        if active.len() < before {
            events.push(EventReason::Completed { job: job.name().to_owned(), condition: finished.condition() });
        }
        if let Finished::Complete { at } = finished {
            last_successful_time = last_successful_time.max(at);
        }
    }
    active.retain(|job| {
        let is_missing = missing.contains(&job.uid);
        if is_missing {
            events.push(EventReason::Missing { job: job.name.to_string() });
        }
        !is_missing
    });
    let (decision, timing) = decide(observed, &active, due);
    for job in observed.unexpected().filter(|job| !decision.records(job)) {
        events.push(EventReason::Unexpected { job: job.name().to_owned() });
    }
    decision.warn(cron_job, timing.as_ref(), &mut events);
    let last_schedule_time = cron_job.status.last_schedule_time;
    let status = StatusUpdate { active, started: None, last_schedule_time, last_successful_time };
    Plan { decision, status, events, next: timing.and_then(|timing| timing.next) }
}

fn decide(observed: &Observed, active: &[ActiveJob], due: Due) -> (Decision, Option<Timing>) {
    let cron_job = &*observed.cron_job;
    let (at, timing) = match due {
        Due::Never(reason) => return (Decision::Never(reason), None),
        Due::NotYet(timing) => return (Decision::NotYet, Some(timing)),
        Due::Now { at, timing } => (at, timing),
    };
    let name = job_name(cron_job, at);
    let namespace = cron_job.metadata.key.namespace().unwrap_or_default();
    let is_active = active.iter().any(|job| *job.name == *name && *job.namespace == *namespace);
    let decision = if is_active || cron_job.status.last_schedule_time.map(minute) == Some(minute(at)) {
        Decision::AlreadyStarted { at }
    } else if let Some(job) = observed.jobs.iter().find(|job| job.name() == name) {
        Decision::Record { at, job: job.clone() }
    } else {
        match cron_job.concurrency_policy {
            ConcurrencyPolicy::Forbid if !active.is_empty() => Decision::StillActive { at },
            ConcurrencyPolicy::Replace => Decision::Start { at, replaced: active.to_vec() },
            ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid => Decision::Start { at, replaced: Vec::new() },
        }
    };
    (decision, Some(timing))
}

impl Decision {
    fn records(&self, job: &OwnedJob) -> bool {
        match self {
            Self::Record { at: _, job: recorded } => recorded.metadata.uid == job.metadata.uid,
            Self::Never(_)
            | Self::NotYet
            | Self::AlreadyStarted { .. }
            | Self::StillActive { .. }
            | Self::Start { .. } => false,
        }
    }

    /// The events of the decision.
    fn warn(&self, cron_job: &CronJobView, timing: Option<&Timing>, events: &mut Vec<EventReason>) {
        let is_parsed = timing.is_some()
            || matches!(self, Self::Never(NeverReason::Unparseable { .. } | NeverReason::NeverStarts { .. }));
        if is_parsed && names_time_zone(cron_job) {
            events.push(EventReason::TimeZoneInSchedule { schedule: cron_job.schedule.as_str().to_owned() });
        }
        if timing.is_some_and(|timing| timing.missed_many) {
            events.push(EventReason::TooManyMissed);
        }
        events.extend(match self {
            Self::Never(reason) => match reason.clone() {
                NeverReason::Terminating | NeverReason::Suspended => None,
                NeverReason::UnknownTimeZone { name, error } => Some(EventReason::UnknownTimeZone { name, error }),
                NeverReason::Unparseable { schedule, error } => Some(EventReason::Unparseable { schedule, error }),
                NeverReason::NeverStarts { schedule, error } => Some(EventReason::NeverStarts { schedule, error }),
            },
            Self::StillActive { .. } => Some(EventReason::AlreadyActive),
            Self::NotYet | Self::AlreadyStarted { .. } | Self::Record { .. } | Self::Start { .. } => None,
        });
    }
}
