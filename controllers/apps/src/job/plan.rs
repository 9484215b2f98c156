//! The plan of a job: which pods are created or deleted.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::assess::{Assessment, number};
use super::backoff::index_backoff_until;
use super::indexes::Indexes;
use super::job_pod::{JobPod, replaces_failed_only};

/// The most pods that one reconcile creates or deletes.
pub(super) const MOST_PODS: usize = 500;

/// What happens to the pods of a job.
#[derive(Debug, Clone)]
pub(super) enum Step<'a> {
    /// The job ends: its active pods are deleted. They keep their finalizers until they are counted.
    DeleteActive(Vec<&'a JobPod>),
    /// The job is suspended: its active pods are deleted, and not counted.
    Suspend(Vec<&'a JobPod>),
    /// There are more active pods than wanted, or several of an index: these are deleted, and not counted.
    DeleteSurplus {
        pods: Vec<&'a JobPod>,
        /// Number of active Pods that are wanted.
        wanted: i32,
    },
    /// Pods are missing, and created.
    Create {
        pods: NewPods,
        /// Number of active Pods that are wanted.
        wanted: i32,
    },
    /// Pods are missing, and created when the back-off is over.
    BackOff { until: Timestamp },
    /// There are as many active pods as wanted.
    Keep,
    /// The job is being deleted: no pod is created, and the garbage collector deletes those that there are.
    LeaveToDeletion,
}

/// The pods to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NewPods {
    /// Number of Pods without an index.
    Plain(usize),
    /// One of each of these indexes.
    Indexed(Vec<i32>),
}

impl NewPods {
    /// How many.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Plain(count) => *count,
            Self::Indexed(indexes) => indexes.len(),
        }
    }
}

impl Step<'_> {
    /// The value of the label `action` of metrics.
    pub(super) const fn action(&self) -> &'static str {
        match self {
            Self::DeleteActive(_) | Self::LeaveToDeletion => "reconciling",
            Self::Suspend(_) | Self::DeleteSurplus { .. } => "pods_deleted",
            Self::Create { .. } | Self::BackOff { .. } => "pods_created",
            Self::Keep => "tracking",
        }
    }

    /// Whether the job is neither ending nor being deleted.
    pub(super) const fn manages_pods(&self) -> bool {
        match self {
            Self::DeleteActive(_) | Self::LeaveToDeletion => false,
            Self::Suspend(_) | Self::DeleteSurplus { .. } | Self::Create { .. } | Self::BackOff { .. } | Self::Keep => {
                true
            }
        }
    }
}

/// Plans for a job.
///
/// Pods are either created or deleted in one reconcile; a deletion goes first.
pub(super) fn plan<'a>(assessment: &Assessment<'a>, now: Timestamp) -> Step<'a> {
    let Assessment { job, active, .. } = assessment;
    if assessment.ending.is_some() {
        return Step::DeleteActive(active.clone());
    }
    if job.metadata.is_terminating() {
        return Step::LeaveToDeletion;
    }
    if job.suspend {
        return Step::Suspend(active.clone());
    }
    let wanted = wanted(assessment);
    let count = number(active.len());
    let mut surplus = surplus(assessment, usize::try_from(count.saturating_sub(wanted)).unwrap_or(0));
    if !surplus.is_empty() {
        surplus.truncate(MOST_PODS);
        return Step::DeleteSurplus { pods: surplus, wanted };
    }
    let terminating = if replaces_failed_only(job) { assessment.terminating } else { 0 };
    let missing = wanted.saturating_sub(terminating).saturating_sub(count);
    match usize::try_from(missing) {
        Ok(missing) if missing > 0 => creation(assessment, missing.min(MOST_PODS), wanted, now),
        Ok(_) | Err(_) => Step::Keep,
    }
}

/// How many active pods are wanted.
fn wanted(assessment: &Assessment<'_>) -> i32 {
    let Assessment { job, active, succeeded, .. } = assessment;
    match job.completions {
        Some(completions) => completions.saturating_sub(*succeeded).min(job.parallelism).max(0),
        // After the first success none is created, and none is deleted.
        None if *succeeded > 0 => number(active.len()),
        None => job.parallelism,
    }
}

/// The active pods to delete: those of an indexed job without a valid index, all but one of each index, and as many of the
/// others as make up `least`.
fn surplus<'a>(assessment: &Assessment<'a>, least: usize) -> Vec<&'a JobPod> {
    let (mut surplus, mut left) = (Vec::new(), Vec::new());
    if assessment.job.is_indexed() {
        let mut by_index: BTreeMap<Option<i32>, Vec<&JobPod>> = BTreeMap::new();
        for pod in &assessment.active {
            by_index.entry(pod.valid_index(assessment.job)).or_default().push(*pod);
        }
        for (index, mut pods) in by_index {
            pods.sort_unstable_by(|a, b| a.deletion_rank().cmp(&b.deletion_rank()));
            left.extend(index.and_then(|_| pods.pop()));
            surplus.extend(pods);
        }
    } else {
        left.clone_from(&assessment.active);
    }
    let more = least.saturating_sub(surplus.len());
    if more > 0 {
        left.sort_unstable_by(|a, b| a.deletion_rank().cmp(&b.deletion_rank()));
        surplus.extend(left.into_iter().take(more));
    }
    surplus
}

fn creation<'a>(assessment: &Assessment<'a>, missing: usize, wanted: i32, now: Timestamp) -> Step<'a> {
    let Assessment { job, indexes, .. } = assessment;
    let has_own_limits = job.backoff_limit_per_index.is_some();
    if !has_own_limits && let Some(until) = assessment.backoff.until(now) {
        return Step::BackOff { until };
    }
    let Some(indexes) = indexes else { return Step::Create { pods: NewPods::Plain(missing), wanted } };
    let mut taken = indexes.succeeded.union(&assessment.active.iter().filter_map(|pod| pod.index).collect());
    if replaces_failed_only(job) {
        let terminating = assessment.pods.iter().filter(|pod| pod.pod.is_terminating());
        taken = taken.union(&terminating.filter_map(|pod| pod.index).collect());
    }
    if let Some(failed) = &indexes.failed {
        taken = taken.union(failed);
    }
    let free = taken.first_missing(missing, job.completions.unwrap_or(0));
    let until = |index: &i32| indexes.awaiting.get(index).and_then(|failed| index_backoff_until(failed, now));
    // Nothing is created where every index waits.
    if let Some(until) = free.iter().map(until).min().flatten() {
        return Step::BackOff { until };
    }
    let ready = free.into_iter().filter(|index| until(index).is_none()).collect();
    Step::Create { pods: NewPods::Indexed(ready), wanted }
}

/// The counts of failures that a new pod of an index carries: counted and not counted ones.
pub(super) fn index_failures(assessment: &Assessment<'_>, index: i32) -> Option<(i32, i32)> {
    let indexes = assessment.indexes.as_ref()?;
    let _: &Indexes = indexes.failed.as_ref()?;
    Some(indexes.awaiting.get(&index).map_or((0, 0), |replaced| {
        let (counted, ignored) = (replaced.index_failures(), replaced.ignored_index_failures());
        if super::failure_policy::pod_failure(assessment.job, replaced).is_counted() {
            (counted.saturating_add(1), ignored)
        } else {
            (counted, ignored.saturating_add(1))
        }
    }))
}
