//! The status of an object.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{Pod, ReplicaSetStatus};
use kcm_framework::api::{Condition, ConditionStatus, Document, EditError};

use super::gates::Gates;
use super::owner::ReplicaOwner;
use crate::shared::availability::next_availability;

/// The only condition type that this controller manages; others are kept.
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// A change of the number of pods that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// What failed.
    pub(super) reason: FailureReason,
    /// The message of the error.
    pub(super) message: String,
}

/// Reasons of the condition `ReplicaFailure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureReason {
    /// A pod could not be created.
    FailedCreate,
    /// A pod could not be deleted.
    FailedDelete,
}

impl FailureReason {
    /// The reason as the API shows it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::FailedCreate => "FailedCreate",
            Self::FailedDelete => "FailedDelete",
        }
    }
}

/// The pods that a status counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedPods<'a> {
    /// The active pods of the object, before anything was created or deleted.
    pub(super) active: &'a [Arc<Pod>],
    /// The number of its terminating pods.
    pub(super) terminating: usize,
}

/// The status at `now`, to be written if it differs from the present one.
pub(super) fn status<V: ReplicaOwner>(
    owner: &V,
    pods: CountedPods<'_>,
    failure: Option<&Failure>,
    gates: Gates,
    now: Timestamp,
) -> ReplicaSetStatus {
    let labeled = |pod: &&Arc<Pod>| {
        owner.template_labels().iter().all(|(key, value)| pod.metadata.labels.get(key) == Some(value))
    };
    let mut status = owner.status().clone();
    status.replicas = number(pods.active.len());
    status.fully_labeled_replicas = number(pods.active.iter().filter(labeled).count());
    status.ready_replicas = number(pods.active.iter().filter(|pod| pod.is_ready()).count());
    let available = pods.active.iter().filter(|pod| pod.is_available_at(owner.min_ready_seconds(), now));
    status.available_replicas = number(available.count());
    status.terminating_replicas = gates.terminating_replicas.then(|| number(pods.terminating));
    status.observed_generation = owner.meta().generation;
    status.conditions = conditions(&owner.status().conditions, failure, now);
    status
}

/// The first failure sets the condition, which stays unchanged until a reconcile succeeds.
fn conditions(present: &[Condition], failure: Option<&Failure>, now: Timestamp) -> Box<[Condition]> {
    match failure {
        Some(_) if failure_in(present).is_some() => present.into(),
        Some(failure) => present.iter().cloned().chain([replica_failure(failure, now)]).collect(),
        None => present.iter().filter(|condition| condition.type_ != REPLICA_FAILURE).cloned().collect(),
    }
}

fn replica_failure(failure: &Failure, now: Timestamp) -> Condition {
    Condition {
        type_: REPLICA_FAILURE.into(),
        status: ConditionStatus::True,
        last_transition_time: Some(now),
        reason: failure.reason.as_str().into(),
        message: failure.message.as_str().into(),
        ..Condition::default()
    }
}

/// The whole object with the status; unknown fields stay.
pub(super) fn with_status<V: ReplicaOwner>(current: &V, status: &ReplicaSetStatus) -> Result<Document, EditError> {
    let mut document = current.document().clone();
    for (name, count) in [
        ("replicas", status.replicas),
        ("fullyLabeledReplicas", status.fully_labeled_replicas),
        ("readyReplicas", status.ready_replicas),
        ("availableReplicas", status.available_replicas),
    ] {
        document.set(&["status", name], &count)?;
    }
    match &status.terminating_replicas {
        Some(count) => document.set(&["status", "terminatingReplicas"], count)?,
        None => document.remove(&["status", "terminatingReplicas"])?,
    }
    document.set(&["status", "observedGeneration"], &status.observed_generation)?;
    match (failure_in(&status.conditions), failure_in(&current.status().conditions)) {
        (Some(failure), None) => document.put_condition(failure)?,
        (None, Some(_)) => document.remove_condition(REPLICA_FAILURE)?,
        // An unchanged condition keeps its place and its unknown fields.
        (Some(_), Some(_)) | (None, None) => {}
    }
    Ok(document)
}

fn failure_in(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == REPLICA_FAILURE)
}

/// Returns the time at which the next of the active pods becomes available.
pub(super) fn recheck_at<'a, V: ReplicaOwner>(
    owner: &V,
    active: impl IntoIterator<Item = &'a Arc<Pod>>,
    now: Timestamp,
) -> Option<Timestamp> {
    let ready = active.into_iter().filter(|pod| pod.is_ready());
    next_availability(ready, owner.min_ready_seconds(), now)
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
