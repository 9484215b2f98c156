//! Event mapping: the Jobs, and the orphans among Pods, that a change enqueues.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::views::{Job, Pod, PodPhase};
use kcm_framework::api::{KnownView as _, ObjectKey, Uid};
use kcm_framework::informers::{Change, Informer};
use kcm_framework::ownership::{OwnerLister, Owners, controller_key};
use kcm_framework::{Enqueue, QueueKey};

use super::assess::external_manager;
use super::job_pod::is_tracked;

/// The time for which changes of Pods and statuses are collected before their Job is reconciled.
pub(super) const BATCH_PERIOD: Duration = Duration::from_secs(1);

/// The delay until a time, at least [`BATCH_PERIOD`].
pub(super) fn delay_until(until: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO).max(BATCH_PERIOD)
}

/// Jobs as owners of Pods.
pub(super) fn owners<L: OwnerLister<Job>>(jobs: L) -> Owners<Job, L> {
    Owners::known(jobs, |job| job.selector.as_ref().ok())
}

/// Lists Jobs, and knows which of them cannot be decoded.
pub(super) trait JobLister: OwnerLister<Job> {
    /// Returns `true` if there may be a Job with this key and uid that cannot be decoded.
    fn is_undecodable(&self, job: &ObjectKey, uid: &Uid) -> bool;
}

impl JobLister for Informer<Job> {
    fn is_undecodable(&self, job: &ObjectKey, uid: &Uid) -> bool {
        self.undecodable(job).is_some_and(|object| object.uid == *uid || object.uid.is_unset())
    }
}

/// The Jobs that count Pods, for the queue of orphans.
#[derive(Clone)]
pub(super) struct CountingJobs<L = Informer<Job>> {
    jobs: L,
    owners: Owners<Job, L>,
}

/// The Job that counts a Pod and removes its finalizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CountedBy {
    /// A Job that runs, or another controller. A Pod without the finalizer is not counted any more.
    Others,
    /// No Job: the Pod has no controller, or its Job was deleted.
    Nobody,
    /// A Job that has finished, and counts no more.
    FinishedJob,
    /// A Job that cannot be decoded, and may run.
    UndecodableJob { job: ObjectKey, uid: Uid },
}

impl<L: JobLister + Clone> CountingJobs<L> {
    pub(super) fn of(jobs: L) -> Self {
        Self { owners: owners(jobs.clone()), jobs }
    }

    /// Returns the Job that counts a Pod. The Pods of a Job that another controller manages are left to that controller.
    pub(super) fn counting(&self, pod: &Pod) -> CountedBy {
        if !is_tracked(pod) {
            return CountedBy::Others;
        }
        let Some(controller) = pod.metadata.controller() else { return CountedBy::Nobody };
        let is_job = *controller.kind == *Job::RESOURCE.kind && *controller.api_version == Job::RESOURCE.api_version();
        let Some(key) = controller_key(&Job::RESOURCE, &pod.metadata).filter(|_| is_job) else {
            return CountedBy::Others;
        };
        let found = || self.owners.controller_of(&pod.metadata);
        let job = match found() {
            None if self.jobs.is_undecodable(&key, &controller.uid) => {
                return CountedBy::UndecodableJob { job: key, uid: controller.uid.clone() };
            }
            // A Job that becomes decodable between both lookups is in the cache now.
            None => found(),
            found => found,
        };
        match job {
            Some(job) if external_manager(&job).is_some() || !job.is_finished() => CountedBy::Others,
            Some(_) => CountedBy::FinishedJob,
            None => CountedBy::Nobody,
        }
    }
}

/// Enqueues a Job if it is created or deleted, or if its spec changes; if only its status changes, after [`BATCH_PERIOD`].
/// An update of a finished Job enqueues nothing.
pub(super) fn key_for_job(change: &Change<Job>) -> Option<Enqueue<ObjectKey>> {
    let key = change.key().clone();
    match change {
        Change::Updated { old: _, new } if new.is_finished() => None,
        Change::Updated { old, new } if old.metadata.generation == new.metadata.generation => {
            Some(Enqueue::after(key, BATCH_PERIOD))
        }
        Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } | Change::Deleted { .. } => {
            Some(key.into())
        }
    }
}

/// Enqueues, after [`BATCH_PERIOD`], the Job that controls a changed Pod before or after the change; for an orphan, all Jobs
/// that select it.
///
/// A Pod that has succeeded as the last one of its Job enqueues the Job at once: no change is left to be collected, and
/// people wait for the end of a Job. `has_unfinished` returns whether a Job, by its uid, has Pods that have not finished.
pub(super) fn keys_for_pod<L: OwnerLister<Job>>(
    change: &Change<Pod>,
    owners: &Owners<Job, L>,
    has_unfinished: impl FnOnce(&Uid) -> bool,
) -> Vec<Enqueue<ObjectKey>> {
    let is_last = || controller_of_succeeded(change).is_some_and(|job| !has_unfinished(job));
    let delay = if is_last() { Duration::ZERO } else { BATCH_PERIOD };
    owners.keys(change).into_iter().map(|key| Enqueue::after(key, delay)).collect()
}

/// The uid of the controller of a Pod that has just succeeded.
fn controller_of_succeeded(change: &Change<Pod>) -> Option<&Uid> {
    match change {
        Change::Updated { old, new } if !old.is_finished() && new.phase == PodPhase::Succeeded => {
            Some(&new.metadata.controller()?.uid)
        }
        Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } | Change::Deleted { .. } => None,
    }
}

/// The key of the queue of orphans: Pods that have the finalizer of Jobs, and no Job that removes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum OrphanKey {
    Pod(ObjectKey),
    /// All Pods of a Job that has finished or was deleted.
    PodsOf {
        job: ObjectKey,
        uid: Uid,
    },
}

impl fmt::Display for OrphanKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(pod) => pod.fmt(f),
            Self::PodsOf { job, uid: _ } => write!(f, "pods of job {job}"),
        }
    }
}

impl QueueKey for OrphanKey {
    fn object(&self) -> Option<&ObjectKey> {
        match self {
            Self::Pod(pod) => Some(pod),
            Self::PodsOf { .. } => None,
        }
    }
}

/// Enqueues the Pods of a Job that has finished or was deleted.
pub(super) fn orphans_of_job(change: &Change<Job>) -> Option<OrphanKey> {
    let job = match change {
        Change::Deleted { last, final_state_known: _ } => last,
        Change::Updated { old: _, new } if new.is_finished() => new,
        // A Job that cannot be decoded still counts its Pods.
        Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } => return None,
    };
    Some(OrphanKey::PodsOf { job: job.metadata.key.clone(), uid: job.metadata.uid.clone() })
}

/// Enqueues a Pod that may be an orphan: a Pod without a controller, and a terminating Pod. When the loop starts, also a
/// Pod of a finished Job: the Job may have finished while no manager saw it, and no event of it follows.
///
/// If the Job cannot be decoded, all its Pods are enqueued as one key, which is reconciled until the Job can be decoded
/// or was deleted: its deletion is no event.
pub(super) fn orphan_of_pod<L: JobLister + Clone>(change: &Change<Pod>, jobs: &CountingJobs<L>) -> Option<OrphanKey> {
    let pod = match change {
        Change::Added(pod) | Change::Updated { old: _, new: pod } => pod,
        Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    let has_left_job = pod.metadata.is_terminating() || pod.metadata.controller().is_none();
    let may_be_orphan = has_left_job || matches!(change, Change::Added(_));
    let pod_key = || OrphanKey::Pod(pod.metadata.key.clone());
    match may_be_orphan.then(|| jobs.counting(pod))? {
        CountedBy::Others => None,
        // The garbage collector deletes the Pods of a deleted Job, which enqueues them.
        CountedBy::Nobody => has_left_job.then(pod_key),
        CountedBy::FinishedJob => Some(pod_key()),
        CountedBy::UndecodableJob { job, uid } => Some(OrphanKey::PodsOf { job, uid }),
    }
}
