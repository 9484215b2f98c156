//! Event mapping: the CronJobs that a change of a CronJob enqueues.

use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::Enqueue;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::CronJob;
use kcm_framework::informers::Change;

use super::due::schedule_of;
use super::missed::next_start;
use super::plan::reconciled_at;
use super::schedule::TimeZones;

/// Enqueues a CronJob at once, but at its next start if its schedule has changed: a start that only the new schedule has
/// missed starts no Job.
pub(super) fn key_for_cron_job(
    change: &Change<CronJob>,
    zones: &TimeZones,
    now: Timestamp,
) -> Option<Enqueue<ObjectKey>> {
    let (cron_job, is_rescheduled) = match change {
        Change::Added(cron_job) => (cron_job, false),
        Change::Updated { old, new } => (new, (&old.schedule, &old.time_zone) != (&new.schedule, &new.time_zone)),
        Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    let schedule = is_rescheduled.then(|| schedule_of(cron_job, zones).ok()).flatten();
    let next = schedule.and_then(|schedule| next_start(cron_job, &schedule, now));
    let delay = next.and_then(|next| Duration::try_from(reconciled_at(next).duration_since(now)).ok());
    Some(Enqueue::after(cron_job.metadata.key.clone(), delay.unwrap_or_default()))
}
