//! The status of a stateful set.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{Pod, PodPhase, StatefulSet, StatefulSetStatus};
use kcm_framework::api::{Document, EditError, InternedStr};

use super::revisions::Revisions;
use crate::shared::availability::next_availability;
use crate::shared::revisions::POD_REVISION;

/// The name of the revision of a pod; empty if it has none.
pub(super) fn revision_of(pod: &Pod) -> &str {
    pod.metadata.labels.get(POD_REVISION).unwrap_or_default()
}

/// Whether the pod runs and is ready.
pub(super) fn is_running_and_ready(pod: &Pod) -> bool {
    pod.phase == PodPhase::Running && pod.is_ready()
}

/// Whether the pod is not available, or terminating.
pub(super) fn is_unavailable(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    !pod.is_available_at(min_ready_seconds, now) || pod.metadata.is_terminating()
}

/// The status at `now`, which counts these pods.
pub(super) fn status(set: &StatefulSet, revisions: &Revisions, pods: &[Arc<Pod>], now: Timestamp) -> StatefulSetStatus {
    let count = |counts: &dyn Fn(&Pod) -> bool| {
        i32::try_from(pods.iter().filter(|pod| counts(pod)).count()).unwrap_or(i32::MAX)
    };
    let has = |pod: &Pod, revision: &str| !pod.metadata.is_terminating() && revision_of(pod) == revision;
    let mut status = StatefulSetStatus::default();
    status.observed_generation = set.metadata.generation;
    status.current_revision = InternedStr::from(revisions.current.name.as_str());
    status.update_revision = InternedStr::from(revisions.update.name.as_str());
    status.collision_count = Some(revisions.collision_count);
    status.conditions.clone_from(&set.status.conditions);
    status.replicas = count(&|_| true);
    status.ready_replicas = count(&is_running_and_ready);
    status.available_replicas =
        count(&|pod| is_running_and_ready(pod) && pod.is_available_at(set.min_ready_seconds, now));
    status.current_replicas = count(&|pod| has(pod, &revisions.current.name));
    status.updated_replicas = count(&|pod| has(pod, &revisions.update.name));
    status
}

/// The status after the reconcile has deleted `going` of the pods of the current revision for the rollout. A rollout of
/// any strategy is complete when all pods are updated and ready: the update revision becomes the current one.
pub(super) fn after_rollout(set: &StatefulSet, mut status: StatefulSetStatus, going: i32) -> StatefulSetStatus {
    status.current_replicas = status.current_replicas.saturating_sub(going).max(0);
    if is_complete(set, &status) {
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
    status
}

/// Returns `true` if all pods are updated and ready, and there are as many as the `StatefulSet` should have.
pub(super) fn is_complete(set: &StatefulSet, status: &StatefulSetStatus) -> bool {
    [status.updated_replicas, status.ready_replicas, status.replicas] == [set.replicas; 3]
}

/// Whether the status has to be written. A collision count alone is not, as upstream.
pub(super) fn is_outdated(present: &StatefulSetStatus, status: &StatefulSetStatus) -> bool {
    let mut counts = status.clone();
    counts.observed_generation = present.observed_generation;
    counts.collision_count = present.collision_count;
    status.observed_generation > present.observed_generation || counts != *present
}

/// The whole stateful set with the status; other conditions and unknown fields stay.
pub(super) fn with_status(set: &StatefulSet, status: &StatefulSetStatus) -> Result<Document, EditError> {
    let mut document = set.document.clone();
    for (name, count) in [
        ("replicas", status.replicas),
        ("readyReplicas", status.ready_replicas),
        ("currentReplicas", status.current_replicas),
        ("updatedReplicas", status.updated_replicas),
        ("availableReplicas", status.available_replicas),
        ("collisionCount", status.collision_count.unwrap_or(0)),
    ] {
        document.set(&["status", name], &count)?;
    }
    document.set(&["status", "observedGeneration"], &status.observed_generation)?;
    document.set(&["status", "currentRevision"], status.current_revision.as_str())?;
    document.set(&["status", "updateRevision"], status.update_revision.as_str())?;
    for condition in status.conditions.iter().filter(|condition| !set.status.conditions.contains(condition)) {
        document.replace_condition(condition)?;
    }
    Ok(document)
}

/// Returns the time at which the next of the pods becomes available.
pub(super) fn recheck_at<'a>(
    set: &StatefulSet,
    pods: impl IntoIterator<Item = &'a Arc<Pod>>,
    now: Timestamp,
) -> Option<Timestamp> {
    let ready = pods.into_iter().filter(|pod| is_running_and_ready(pod));
    next_availability(ready, set.min_ready_seconds, now)
}
