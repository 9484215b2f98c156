//! Tracking: how finished pods get into the counters of the status, each exactly once.
//!
//! A pod keeps a finalizer until it is counted. Counting takes three writes, each of which may be the last of a process:
//! the uids go into `status.uncountedTerminatedPods`, the finalizers are removed, and the uids become counts. A pod with a
//! finalizer is counted nowhere; one without is in the list, or in the counters. Of indexed jobs, succeeded indexes stand
//! for the pods.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use kcm_framework::api::Uid;
use kcm_framework::api::views::JobStatus;

use super::assess::{Assessment, number};
use super::conditions::{Ending, JobResult, set_suspended};
use super::failure_policy::pod_failure;
use super::job_pod::JobPod;
use super::plan::Step;

/// The most uids in the status, which keeps it below some 20 KB.
pub(super) const MOST_UNCOUNTED: usize = 500;

/// What became of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Applied {
    /// How many pods were created.
    pub(super) created: i32,
    /// How many pods were deleted, or were gone already.
    pub(super) deleted: i32,
    /// How many of these were ready.
    pub(super) deleted_ready: i32,
}

/// The first write of the tracking, and what follows it.
#[derive(Debug, Clone)]
pub(super) struct Tracking<'a> {
    /// The status to write.
    pub(super) status: JobStatus,
    /// The pods whose finalizers are removed after that.
    pub(super) release: Vec<&'a JobPod>,
    /// The pods that are not counted yet.
    pub(super) tracked: HashSet<&'a Uid>,
    /// How the job ends, unless some of its pods are left for another reconcile.
    pub(super) ending: Option<Ending>,
    /// The event of a job that was suspended or resumed: whether it is suspended.
    pub(super) suspension: Option<bool>,
    /// How many failures each action of the pod failure policy handled.
    pub(super) policy_actions: BTreeMap<&'static str, u64>,
}

/// Plans the tracking, at `now` in whole seconds, after a step was applied.
pub(super) fn track<'a>(
    assessment: &Assessment<'a>,
    step: &Step<'_>,
    applied: Applied,
    unsets_start_time: bool,
    now: Timestamp,
) -> Tracking<'a> {
    let Assessment { job, pods, .. } = assessment;
    let mut status = job.status.clone();
    status.start_time = assessment.start_time;
    status.active = number(assessment.active.len()) + applied.created - applied.deleted;
    status.ready = Some(assessment.ready - applied.deleted_ready);
    status.terminating = Some(assessment.terminating + applied.deleted);

    let ending = ending_after(assessment, step, status.active);
    let mut suspension = None;
    if ending.is_none() && step.manages_pods() && set_suspended(&mut status, job.suspend, now) {
        suspension = Some(job.suspend);
        if !job.suspend {
            status.start_time = Some(now);
        } else if unsets_start_time {
            status.start_time = None;
        }
    }

    let tracked: HashSet<&Uid> = pods.iter().filter(|pod| pod.is_tracked).map(JobPod::uid).collect();
    count(&mut status, &tracked);
    let mut uncounted = Uncounted::new(assessment, ending.as_ref());
    let has_all = pods.iter().filter(|pod| pod.is_tracked).all(|pod| uncounted.take(pod, &mut status));
    if let Some(indexes) = &assessment.indexes {
        status.succeeded = indexes.succeeded.total();
        status.completed_indexes = indexes.succeeded.to_string().into();
        status.failed_indexes = indexes.failed.as_ref().map(|failed| failed.to_string().into());
    }
    if let Some(ending) = &ending {
        ending.announce(&mut status, now);
    }
    let Uncounted { release, policy_actions, .. } = uncounted;
    Tracking { status, release, tracked, ending: ending.filter(|_| has_all), suspension, policy_actions }
}

/// How the job ends after a step: not before all its active pods are deleted.
fn ending_after(assessment: &Assessment<'_>, step: &Step<'_>, active: i32) -> Option<Ending> {
    match step {
        Step::DeleteActive(_) => assessment.ending.clone().filter(|_| active == 0),
        Step::Suspend(_)
        | Step::DeleteSurplus { .. }
        | Step::Create { .. }
        | Step::BackOff { .. }
        | Step::Keep
        | Step::LeaveToDeletion => assessment.is_complete_with(active).then(|| {
            let message = "Reached expected number of succeeded pods";
            Ending::new(JobResult::Complete, "CompletionsReached", message)
        }),
    }
}

/// The pods that are taken into the list of the status.
struct Uncounted<'a, 'p> {
    assessment: &'a Assessment<'p>,
    /// Those that the list has already.
    known: HashSet<&'a Uid>,
    known_failed: HashSet<&'a Uid>,
    ending: Option<JobResult>,
    new_indexes: usize,
    release: Vec<&'p JobPod>,
    policy_actions: BTreeMap<&'static str, u64>,
}

impl<'a, 'p> Uncounted<'a, 'p> {
    fn new(assessment: &'a Assessment<'p>, ending: Option<&Ending>) -> Self {
        let uncounted = &assessment.job.status.uncounted;
        Self {
            assessment,
            known: uncounted.succeeded.iter().collect(),
            known_failed: uncounted.failed.iter().collect(),
            ending: ending.map(|ending| ending.result),
            new_indexes: 0,
            release: Vec::new(),
            policy_actions: BTreeMap::new(),
        }
    }

    /// Takes a pod whose finalizer may be removed. Returns false when the list is full.
    fn take(&mut self, pod: &'p JobPod, status: &mut JobStatus) -> bool {
        let job = self.assessment.job;
        let has_failed = pod.has_failed(job);
        if !self.may_release(pod, has_failed) {
            return true;
        }
        self.release.push(pod);
        if pod.has_succeeded() && !self.known_failed.contains(pod.uid()) {
            if let Some(indexes) = &self.assessment.indexes {
                let is_new = pod.valid_index(job).is_some_and(|index| !indexes.counted.contains(index));
                self.new_indexes += usize::from(is_new);
            } else if !self.known.contains(pod.uid()) {
                status.uncounted.succeeded.push(pod.uid().clone());
            }
        // Of a job that fails, every pod that has not finished fails.
        } else if (has_failed || self.ending == Some(JobResult::Failed))
            && !self.known_failed.contains(pod.uid())
            && pod.is_countable(job)
        {
            let failure = pod_failure(job, pod);
            if let Some(action) = failure.action() {
                *self.policy_actions.entry(action).or_default() += 1;
            }
            if failure.is_counted() {
                status.uncounted.failed.push(pod.uid().clone());
            }
        }
        self.new_indexes + status.uncounted.succeeded.len() + status.uncounted.failed.len() < MOST_UNCOUNTED
    }

    /// Whether the finalizer of the pod may be removed: the pod has finished, or the job ends or is being deleted. A failed
    /// pod that another one of its index will take over from keeps it.
    fn may_release(&self, pod: &JobPod, has_failed: bool) -> bool {
        let is_awaiting = || {
            let indexes = self.assessment.indexes.as_ref();
            let awaiting = indexes.and_then(|indexes| indexes.awaiting.get(&pod.index?));
            awaiting.is_some_and(|awaiting| awaiting.uid() == pod.uid())
        };
        self.assessment.job.metadata.is_terminating()
            || self.ending.is_some()
            || pod.has_succeeded()
            || has_failed && !is_awaiting()
    }
}

/// Counts the pods in the list of the status that are not tracked any more.
pub(super) fn count(status: &mut JobStatus, tracked: &HashSet<&Uid>) {
    let counted = |uids: &mut Vec<Uid>| {
        let before = uids.len();
        uids.retain(|uid| tracked.contains(uid));
        number(before - uids.len())
    };
    status.succeeded = status.succeeded.saturating_add(counted(&mut status.uncounted.succeeded));
    status.failed = status.failed.saturating_add(counted(&mut status.uncounted.failed));
}

/// Ends the job, once all pods are counted and none is terminating. Returns whether it has.
pub(super) fn finish(status: &mut JobStatus, ending: Option<&Ending>, now: Timestamp) -> bool {
    let Some(ending) = ending else { return false };
    let uncounted = &status.uncounted;
    let waits = !uncounted.succeeded.is_empty() || !uncounted.failed.is_empty() || status.terminating > Some(0);
    if !waits {
        ending.finish(status, now);
    }
    !waits
}
