//! The finished jobs beyond the history limits.

use std::cmp::Ordering;

use super::observe::{Finished, Observed, OwnedJob};

/// The finished jobs to delete: of those that completed and of those that failed the oldest beyond the limit.
///
/// The job of the start that is `due` is kept: until the status has its time, its name is all that shows that it was
/// started.
pub(super) fn jobs_to_delete<'a>(observed: &'a Observed, due: Option<&str>) -> Vec<&'a OwnedJob> {
    let of = |finished: fn(Finished) -> bool, limit: Option<i32>| {
        let mut jobs: Vec<&OwnedJob> = observed.jobs.iter().filter(|job| job.finished.is_some_and(finished)).collect();
        let surplus = limit.map_or(0, |limit| jobs.len().saturating_sub(usize::try_from(limit).unwrap_or(0)));
        jobs.sort_by(|a, b| oldest_first(a, b));
        jobs.truncate(surplus);
        jobs
    };
    let completed = of(|it| matches!(it, Finished::Complete { .. }), observed.cron_job.successful_jobs_history_limit);
    let failed = of(|it| it == Finished::Failed, observed.cron_job.failed_jobs_history_limit);
    let all = completed.into_iter().chain(failed);
    all.filter(|job| !job.metadata.is_terminating() && due != Some(job.name())).collect()
}

/// By the time of their start, then by name; jobs that were never started are last.
fn oldest_first(a: &OwnedJob, b: &OwnedJob) -> Ordering {
    let by_start = match (a.start_time, b.start_time) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    by_start.then_with(|| a.name().cmp(b.name()))
}
