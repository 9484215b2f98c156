//! The assessment of a job: what it and its pods amount to, and whether it ends.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::views::{JobView, PodPhase};
use kcm_framework::api::{InternedStr, Uid};

use super::backoff::BackoffRecord;
use super::conditions::{Ending, JobResult};
use super::failure_policy::{PodFailure, pod_failure};
use super::indexes::Indexes;
use super::job_pod::JobPod;
use super::success_policy::met_rule;

/// What a job and its pods amount to at a time, before anything is changed.
#[derive(Debug, Clone)]
pub(super) struct Assessment<'a> {
    /// The job.
    pub(super) job: &'a JobView,
    /// All its pods, by index.
    pub(super) pods: &'a [JobPod],
    /// Those that are neither finished nor terminating.
    pub(super) active: Vec<&'a JobPod>,
    /// How many of the active ones are ready.
    pub(super) ready: i32,
    /// How many are terminating.
    pub(super) terminating: i32,
    /// How many pods have succeeded, or indexes of an indexed job, counted or not.
    pub(super) succeeded: i32,
    /// How many pods have failed, counted or not.
    pub(super) failed: i32,
    /// The indexes of an indexed job.
    pub(super) indexes: Option<IndexState<'a>>,
    /// The back-off with the pods that have finished since the last reconcile.
    pub(super) backoff: BackoffRecord,
    /// `status.startTime`, which is set when the job first runs.
    pub(super) start_time: Option<Timestamp>,
    /// How the job ends; absent while it goes on.
    pub(super) ending: Option<Ending>,
}

/// The indexes of an indexed job.
#[derive(Debug, Clone)]
pub(super) struct IndexState<'a> {
    /// Those that the status has as completed.
    pub(super) counted: Indexes,
    /// Those that have succeeded.
    pub(super) succeeded: Indexes,
    /// Those that have failed, where each has a limit of its own.
    pub(super) failed: Option<Indexes>,
    /// The failed pod of each index that waits for another pod, where each index has a limit of its own. It is kept until
    /// the other one exists, which takes over its count of failures.
    pub(super) awaiting: BTreeMap<i32, &'a JobPod>,
}

/// Assesses a job at `now`, which must be in whole seconds, as the API has times. `pods` are sorted by index.
pub(super) fn assess<'a>(
    job: &'a JobView,
    pods: &'a [JobPod],
    before: BackoffRecord,
    now: Timestamp,
) -> Assessment<'a> {
    let active: Vec<_> = pods.iter().filter(|pod| pod.pod.is_active()).collect();
    let [new_succeeded, new_failed] = newly_finished(job, pods);
    let counted_failures = new_failed.iter().filter(|pod| pod_failure(job, pod).is_counted()).count();
    let uncounted = &job.status.uncounted;
    let failed = job.status.failed.saturating_add(number(counted_failures + uncounted.failed.len()));
    let end = announced_or_failed(job, pods, failed, now);
    let indexes = job.is_indexed().then(|| index_state(job, pods, &active));
    let end = end.or_else(|| indexes.as_ref().and_then(|indexes| end_by_indexes(job, indexes)));
    let newly = job.status.succeeded.saturating_add(number(new_succeeded.len() + uncounted.succeeded.len()));
    Assessment {
        job,
        pods,
        ready: number(active.iter().filter(|pod| pod.pod.is_ready()).count()),
        active,
        terminating: number(pods.iter().filter(|pod| pod.pod.is_terminating()).count()),
        succeeded: indexes.as_ref().map_or(newly, |indexes| indexes.succeeded.total()),
        failed,
        indexes,
        backoff: before.after(&new_succeeded, &new_failed),
        start_time: start_time(job, now),
        ending: end,
    }
}

/// The start time of a Job, which is set when the Job first runs.
fn start_time(job: &JobView, now: Timestamp) -> Option<Timestamp> {
    job.status.start_time.or((!job.suspend).then_some(now))
}

/// The time at which a Job exceeds its active deadline. `now` must be in whole seconds.
pub(super) fn active_deadline(job: &JobView, now: Timestamp) -> Option<Timestamp> {
    let (start, seconds) = start_time(job, now).zip(job.active_deadline_seconds).filter(|_| !job.suspend)?;
    Some(start.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX))
}

/// The pods that have succeeded and those that have failed, of which the status knows nothing yet.
fn newly_finished<'a>(job: &JobView, pods: &'a [JobPod]) -> [Vec<&'a JobPod>; 2] {
    let uncounted = &job.status.uncounted;
    let new = |known: &[Uid], is_finished: &dyn Fn(&JobPod) -> bool| {
        let known: HashSet<&Uid> = known.iter().collect();
        let is_new =
            |pod: &&JobPod| pod.is_tracked && is_finished(pod) && !known.contains(pod.uid()) && pod.is_countable(job);
        pods.iter().filter(is_new).collect()
    };
    [new(&uncounted.succeeded, &JobPod::has_succeeded), new(&uncounted.failed, &|pod| pod.has_failed(job))]
}

/// The end that the status announces, else the failure by policy, back-off limit or deadline. The order is upstream's: a
/// job may meet several criteria at once.
fn announced_or_failed(job: &JobView, pods: &[JobPod], failed: i32, now: Timestamp) -> Option<Ending> {
    let fails = |reason, message: &str| Some(Ending::new(JobResult::Failed, reason, message));
    let by_policy = || {
        let failures = pods.iter().filter(|pod| pod.has_failed(job)).map(|pod| pod_failure(job, pod));
        let mut messages = failures.filter_map(|failure| match failure {
            PodFailure::FailJob { message } => Some(message),
            PodFailure::Unmatched | PodFailure::Count | PodFailure::Ignore | PodFailure::FailIndex => None,
        });
        messages.next().and_then(|message| fails("PodFailurePolicy", &message))
    };
    let by_limits = || {
        if failed > job.backoff_limit || exceeds_restarts(job, pods) {
            fails("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        } else if active_deadline(job, now).is_some_and(|deadline| deadline <= now) {
            fails("DeadlineExceeded", "Job was active longer than specified deadline")
        } else {
            None
        }
    };
    Ending::announced(&job.status).or_else(by_policy).or_else(by_limits)
}

/// Whether the containers of a job whose pods restart by themselves were restarted too often.
fn exceeds_restarts(job: &JobView, pods: &[JobPod]) -> bool {
    if !job.restarts_on_failure {
        return false;
    }
    let runs = |pod: &&JobPod| matches!(pod.pod.phase, PodPhase::Running | PodPhase::Pending);
    let restarts = pods.iter().filter(runs).map(|pod| pod.termination().restarts).fold(0, i32::saturating_add);
    // A limit of 0 allows no restart, and so does one of 1.
    restarts >= job.backoff_limit.max(1)
}

fn end_by_indexes(job: &JobView, indexes: &IndexState<'_>) -> Option<Ending> {
    if let Some(failed) = indexes.failed.as_ref().map(Indexes::total) {
        let is_all = failed.saturating_add(indexes.succeeded.total()) >= job.completions.unwrap_or(0);
        if job.max_failed_indexes.is_some_and(|most| failed > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(Ending::new(JobResult::Failed, "MaxFailedIndexesExceeded", message));
        }
        if failed > 0 && is_all {
            return Some(Ending::new(JobResult::Failed, "FailedIndexes", "Job has failed indexes"));
        }
    }
    met_rule(job, &indexes.succeeded)
        .map(|rule| Ending::new(JobResult::Complete, "SuccessPolicy", format!("Matched rules at index {rule}")))
}

fn index_state<'a>(job: &JobView, pods: &'a [JobPod], active: &[&JobPod]) -> IndexState<'a> {
    let completions = job.completions.unwrap_or(0);
    let new = |is_finished: &dyn Fn(&JobPod) -> bool| -> Indexes {
        let finished = pods.iter().filter(|pod| pod.is_tracked && is_finished(pod));
        finished.filter_map(|pod| pod.valid_index(job)).collect()
    };
    let counted = Indexes::parse(&job.status.completed_indexes, completions);
    let succeeded = counted.union(&new(&JobPod::has_succeeded));
    let failed = job.backoff_limit_per_index.map(|limit| {
        let before = job.status.failed_indexes.as_deref().unwrap_or_default();
        Indexes::parse(before, completions).union(&new(&|pod| has_failed_index(job, pod, limit)))
    });
    let awaiting = match &failed {
        Some(failed) => awaiting(job, pods, active, &succeeded, failed),
        None => BTreeMap::new(),
    };
    IndexState { counted, succeeded, failed, awaiting }
}

/// Whether the failure of this pod is the one too many of its index.
fn has_failed_index(job: &JobView, pod: &JobPod, limit: i32) -> bool {
    pod.has_failed(job)
        && match pod_failure(job, pod) {
            PodFailure::FailIndex => true,
            PodFailure::Ignore => false,
            PodFailure::Unmatched | PodFailure::Count | PodFailure::FailJob { .. } => pod.index_failures() >= limit,
        }
}

/// The failed pod of each index that is neither active nor finished: of several the last, by number and time.
fn awaiting<'a>(
    job: &JobView,
    pods: &'a [JobPod],
    active: &[&JobPod],
    succeeded: &Indexes,
    failed: &Indexes,
) -> BTreeMap<i32, &'a JobPod> {
    let active: BTreeSet<i32> = active.iter().filter_map(|pod| pod.index).collect();
    let mut awaiting = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.is_tracked && pod.has_failed(job)) {
        let Some(index) = pod.valid_index(job) else { continue };
        if succeeded.contains(index) || failed.contains(index) || active.contains(&index) {
            continue;
        }
        let last = awaiting.entry(index).or_insert(pod);
        if last.all_index_failures() <= pod.all_index_failures() && last.finished_at() <= pod.finished_at() {
            *last = pod;
        }
    }
    awaiting
}

impl Assessment<'_> {
    /// Whether so many active pods and the successes make the job complete.
    pub(super) fn is_complete_with(&self, active: i32) -> bool {
        let has_enough = match self.job.completions {
            // Without a number of completions, the first success stands for the job, and the other pods are waited for.
            None => self.succeeded > 0,
            Some(completions) => self.succeeded >= completions,
        };
        has_enough && active == 0
    }
}

/// The value of the label `completion_mode` of metrics.
pub(super) fn completion_mode(job: &JobView) -> &'static str {
    if job.is_indexed() { "Indexed" } else { "NonIndexed" }
}

/// The controller other than this one that manages the job.
pub(super) fn external_manager(job: &JobView) -> Option<&InternedStr> {
    job.managed_by.as_ref().filter(|name| **name != "kubernetes.io/job-controller")
}

/// The length of a list, as statuses have it.
pub(super) fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
