//! Event mapping: the Jobs, and the orphans among Pods, that a change enqueues.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::views::{Job, Pod, PodPhase};
use kcm_framework::api::{KnownView as _, ObjectKey, Uid};
use kcm_framework::informers::Change;
use kcm_framework::ownership::{OwnerLister, Owners};
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
pub(super) fn orphan_of_pod<L: OwnerLister<Job>>(change: &Change<Pod>, owners: &Owners<Job, L>) -> Option<OrphanKey> {
    let pod = match change {
        Change::Added(pod) | Change::Updated { old: _, new: pod } => pod,
        Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    let is_added = matches!(change, Change::Added(_));
    let may_be_orphan = pod.metadata.is_terminating()
        || pod.metadata.controller().is_none()
        || is_added && owners.controller_of(&pod.metadata).is_some_and(|job| job.is_finished());
    (may_be_orphan && is_orphan(pod, owners)).then(|| OrphanKey::Pod(pod.metadata.key.clone()))
}

/// Returns whether the Pod has the finalizer of Jobs, and no Job that removes it: it has no controller, or its Job was
/// deleted or has finished. The Pods of a Job that another controller manages are left to that controller.
pub(super) fn is_orphan<L: OwnerLister<Job>>(pod: &Pod, owners: &Owners<Job, L>) -> bool {
    if !is_tracked(pod) {
        return false;
    }
    let Some(controller) = pod.metadata.controller() else { return true };
    let is_job = *controller.kind == *Job::RESOURCE.kind && *controller.api_version == Job::RESOURCE.api_version();
    is_job
        && owners.controller_of(&pod.metadata).is_none_or(|job| external_manager(&job).is_none() && job.is_finished())
}
