//! Event mapping: the jobs that a change of a job enqueues.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{Job, JobCompletion};
use kcm_framework::informers::Change;

/// A finished job with a time to live is enqueued when it is added, updated or resynced; no other one is.
pub(super) fn keys_for_job(change: &Change<Job>) -> Option<ObjectKey> {
    let job = match change {
        Change::Added(job) | Change::Updated { new: job, .. } => job,
        Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    let ends = job.ttl_seconds_after_finished.is_some() && job.completion != JobCompletion::Unfinished;
    (ends && !job.metadata.is_terminating()).then(|| job.metadata.key.clone())
}
