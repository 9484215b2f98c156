//! The plan for a CronJob: which Job is started, and the changes of the status.

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::Uid;
use kcm_framework::api::views::{ActiveJob, ConcurrencyPolicy, CronJobView};

use super::due::{Due, NeverReason, Timing, names_time_zone};
use super::events::CronJobEvent;
use super::observe::{Finished, Observed, OwnedJob};
use super::status::StatusUpdate;

/// The delay of the reconcile of a start, because clocks differ a little.
///
/// # Upstream
/// `nextScheduleDelta`.
const PAD: SignedDuration = SignedDuration::from_millis(100);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) decision: Decision,
    /// The status without the Job that is started.
    pub(super) status: StatusUpdate,
    /// The events that no request records.
    pub(super) events: Vec<CronJobEvent>,
    pub(super) next: Option<Timestamp>,
}

/// Whether a Job is started, and why not.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    Never(NeverReason),
    NotYet,
    AlreadyStarted {
        at: Timestamp,
    },
    /// The Job of the start exists, and the status does not have it: it was created, and the status was not written.
    Record {
        at: Timestamp,
        job: OwnedJob,
    },
    /// Another Job runs, and the concurrency policy is `Forbid`.
    StillActive {
        at: Timestamp,
    },
    Start {
        at: Timestamp,
        /// The Jobs that are deleted first, because the concurrency policy is `Replace`.
        replaced: Vec<ActiveJob>,
    },
}

/// The name of the Job of a start: one name for each minute, so that no Job is created twice.
pub(super) fn job_name(cron_job: &CronJobView, at: Timestamp) -> String {
    format!("{}-{}", cron_job.metadata.key.name(), minute(at))
}

fn minute(at: Timestamp) -> i64 {
    at.as_second() / 60
}

/// The time at which a start is reconciled.
pub(super) fn reconciled_at(start: Timestamp) -> Timestamp {
    start.saturating_add(PAD).expect("a duration without months adds to any time")
}

/// Plans for a CronJob, of whose Jobs these were just `deleted`; active Jobs of the status that do not exist are `missing`.
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
            events.push(CronJobEvent::Completed { job: job.name().to_owned(), condition: finished.condition() });
        }
        if let Finished::Complete { at } = finished {
            last_successful_time = last_successful_time.max(at);
        }
    }
    active.retain(|job| {
        let is_missing = missing.contains(&job.uid);
        if is_missing {
            events.push(CronJobEvent::Missing { job: job.name.to_string() });
        }
        !is_missing
    });
    let (decision, timing) = decide(observed, &active, due);
    for job in observed.unexpected().filter(|job| !decision.records(job)) {
        events.push(CronJobEvent::Unexpected { job: job.name().to_owned() });
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

    /// Adds the events of the decision.
    fn warn(&self, cron_job: &CronJobView, timing: Option<&Timing>, events: &mut Vec<CronJobEvent>) {
        let is_parsed = timing.is_some()
            || matches!(self, Self::Never(NeverReason::Unparseable { .. } | NeverReason::NeverStarts { .. }));
        if is_parsed && names_time_zone(cron_job) {
            events.push(CronJobEvent::TimeZoneInSchedule { schedule: cron_job.schedule.as_str().to_owned() });
        }
        if timing.is_some_and(|timing| timing.missed_many) {
            events.push(CronJobEvent::TooManyMissed);
        }
        events.extend(match self {
            Self::Never(reason) => match reason.clone() {
                NeverReason::Terminating | NeverReason::Suspended => None,
                NeverReason::UnknownTimeZone { name, error } => Some(CronJobEvent::UnknownTimeZone { name, error }),
                NeverReason::Unparseable { schedule, error } => Some(CronJobEvent::Unparseable { schedule, error }),
                NeverReason::NeverStarts { schedule, error } => Some(CronJobEvent::NeverStarts { schedule, error }),
            },
            Self::StillActive { .. } => Some(CronJobEvent::AlreadyActive),
            Self::NotYet | Self::AlreadyStarted { .. } | Self::Record { .. } | Self::Start { .. } => None,
        });
    }
}
