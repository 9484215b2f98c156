//! Starts that are due, and the next start.

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::views::CronJobView;

use super::schedule::Schedule;

/// More missed starts than this are a warning.
const MANY: i64 = 100;

/// The starts of a cron job between a time and now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missed {
    /// None: the next one is in the future.
    None,
    /// These, of which the most recent is started.
    Some {
        /// The most recent; absent where the estimate of their number finds none.
        latest: Option<Timestamp>,
        /// Whether there are more than a hundred, by the estimate.
        are_many: bool,
    },
}

/// A schedule that never starts, such as on the 31st of February.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub(super) struct NeverStarts;

/// The time from which on starts count: the last one, or else the creation.
fn since(cron_job: &CronJobView) -> Timestamp {
    let created = || cron_job.metadata.creation_timestamp.unwrap_or(Timestamp::UNIX_EPOCH);
    cron_job.status.last_schedule_time.unwrap_or_else(created)
}

/// So many seconds after a time, or before it.
fn after_seconds(time: Timestamp, seconds: i64) -> Timestamp {
    time.saturating_add(SignedDuration::from_secs(seconds)).expect("a duration without months adds to any time")
}

/// The starts since the last one that are still within the starting deadline.
pub(super) fn missed_starts(
    cron_job: &CronJobView,
    schedule: &Schedule,
    now: Timestamp,
) -> Result<Missed, NeverStarts> {
    let deadline = cron_job.starting_deadline_seconds.map(|seconds| after_seconds(now, seconds.saturating_neg()));
    missed_since(deadline.map_or(since(cron_job), |deadline| deadline.max(since(cron_job))), schedule, now)
}

/// The next start in the future, as far as the last one tells; absent where there is none within five years.
///
/// # Upstream
/// `nextScheduleTimeDuration`. A start that was missed does not count, whether or not it is still within its deadline.
pub(super) fn next_start(cron_job: &CronJobView, schedule: &Schedule, now: Timestamp) -> Option<Timestamp> {
    let last = match missed_since(since(cron_job), schedule, now) {
        Ok(Missed::None) => since(cron_job),
        Ok(Missed::Some { latest: Some(latest), are_many: _ }) => latest,
        Ok(Missed::Some { latest: None, are_many: _ }) | Err(NeverStarts) => now,
    };
    schedule.next(last)
}

/// The number of starts is estimated by the time between the first two, so that years of them cost no more than days: the
/// search for the most recent begins two such times before now.
///
/// For `30 6-16/4 * * 1-5` after Monday 6:30, with a start every four hours by the estimate, the search begins at most
/// eight hours before now, whatever year it is.
fn missed_since(since: Timestamp, schedule: &Schedule, now: Timestamp) -> Result<Missed, NeverStarts> {
    let first = schedule.next(since).ok_or(NeverStarts)?;
    if now < first {
        return Ok(Missed::None);
    }
    let second = schedule.next(first).ok_or(NeverStarts)?;
    if now < second {
        return Ok(Missed::Some { latest: Some(first), are_many: false });
    }
    let period = second.duration_since(first).as_secs();
    if period < 1 {
        return Err(NeverStarts);
    }
    let count = now.duration_since(first).as_secs() / period + 1;
    let begin = after_seconds(first, (count - 2).saturating_mul(period));
    let starts = std::iter::successors(schedule.next(begin), |start| schedule.next(*start));
    let latest = starts.take_while(|start| *start <= now).last();
    Ok(Missed::Some { latest, are_many: count > MANY })
}
