//! The status of a deployment.

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::views::{Deployment, DeploymentStatus, DeploymentView, ReplicaSetStatus};
use kcm_framework::api::{Condition, Document, EditError};

use super::annotations::REVISION;
use super::conditions::{Conditions, PROGRESSING, REPLICA_FAILURE, Reason, find};
use super::gates::Gates;
use super::rollout::Limits;

/// A replica set as the status counts it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedReplicaSet<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// `spec.replicas`.
    pub(super) desired: i32,
    /// Its status.
    pub(super) status: &'a ReplicaSetStatus,
}

/// The input of a status: the replica sets before the steps of the plan.
#[derive(Debug, Clone)]
pub(super) struct StatusInput<'a> {
    /// The deployment.
    pub(super) deployment: &'a DeploymentView,
    /// Its limits.
    pub(super) limits: &'a Limits,
    /// The old replica sets.
    pub(super) old: Vec<CountedReplicaSet<'a>>,
    /// The new replica set, which the plan may create.
    pub(super) new: Option<CountedReplicaSet<'a>>,
}

/// The part of the status that is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusScope {
    /// Counts and availability: while the deployment is scaled, paused or deleted.
    Counts,
    /// Progress and failures as well: during a rollout.
    Rollout,
}

/// The status at `now`. `conditions` are those that the reconcile itself changed.
pub(super) fn status(
    basis: &StatusInput<'_>,
    scope: StatusScope,
    mut conditions: Conditions,
    gates: Gates,
    now: Timestamp,
) -> DeploymentStatus {
    let mut status = counts(basis, gates);
    let reason = if i64::from(status.available_replicas) >= i64::from(basis.limits.min_available()) {
        Reason::MinimumReplicasAvailable.at(now, "Deployment has minimum availability.")
    } else {
        Reason::MinimumReplicasUnavailable.at(now, "Deployment does not have minimum availability.")
    };
    conditions.set(reason);
    if scope == StatusScope::Rollout {
        set_progressing(basis, &status, &mut conditions, now);
        match failure_of(basis) {
            Some(failure) => conditions.set(failure),
            None => conditions.remove(REPLICA_FAILURE),
        }
    }
    status.conditions = conditions.into_boxed_slice();
    status
}

fn counts(basis: &StatusInput<'_>, gates: Gates) -> DeploymentStatus {
    let all = || basis.old.iter().chain(&basis.new);
    let sum = |of: fn(&ReplicaSetStatus) -> i32| all().map(|set| of(set.status)).fold(0, i32::saturating_add);
    let available = sum(|status| status.available_replicas);
    let desired = all().map(|set| set.desired).fold(0, i32::saturating_add);
    let mut status = basis.deployment.status.clone();
    status.observed_generation = basis.deployment.metadata.generation;
    status.replicas = sum(|status| status.replicas);
    status.updated_replicas = basis.new.map_or(0, |new| new.status.replicas);
    status.ready_replicas = sum(|status| status.ready_replicas);
    status.available_replicas = available;
    // While old replica sets are scaled down, more replicas may be available than desired.
    status.unavailable_replicas = desired.saturating_sub(available).max(0);
    status.terminating_replicas = if gates.terminating_replicas { terminating(all()) } else { None };
    status
}

/// The sum, unless a replica set that its controller has observed does not count terminating pods.
fn terminating<'a>(sets: impl Iterator<Item = &'a CountedReplicaSet<'a>>) -> Option<i32> {
    let counted = sets.map(|set| match set.status.terminating_replicas {
        None if set.status.observed_generation == 0 => Some(0),
        counted => counted,
    });
    counted.sum()
}

fn set_progressing(basis: &StatusInput<'_>, status: &DeploymentStatus, conditions: &mut Conditions, now: Timestamp) {
    let deployment = basis.deployment;
    let Some(deadline) = progress_deadline(deployment) else {
        conditions.remove(PROGRESSING);
        return;
    };
    // A complete rollout stays complete when pods are lost.
    if status.replicas == status.updated_replicas && conditions.progress_is(Reason::NewReplicaSetAvailable) {
        return;
    }
    let what = basis.new.map_or_else(
        || format!("Deployment \"{}\"", deployment.metadata.key.name()),
        |new| format!("ReplicaSet \"{}\"", new.name),
    );
    if is_complete(deployment, status) {
        conditions.set(Reason::NewReplicaSetAvailable.at(now, format!("{what} has successfully progressed.")));
    } else if has_progressed(&deployment.status, status) {
        // Replaced even if the reason is the same: the deadline starts again.
        conditions.replace(Reason::ReplicaSetUpdated.at(now, format!("{what} is progressing.")));
    } else if has_timed_out(conditions, deadline, now) {
        conditions.set(Reason::ProgressDeadlineExceeded.at(now, format!("{what} has timed out progressing.")));
    }
}

/// The progress deadline; absent if it is not set or the largest number, which disables it.
pub(super) fn progress_deadline(deployment: &DeploymentView) -> Option<SignedDuration> {
    let seconds = deployment.progress_deadline_seconds.filter(|&seconds| seconds != i32::MAX)?;
    Some(SignedDuration::from_secs(seconds.into()))
}

/// Whether all replicas are updated and available, no old replica is left, and the status is of the latest generation.
pub(super) fn is_complete(deployment: &DeploymentView, status: &DeploymentStatus) -> bool {
    [status.updated_replicas, status.replicas, status.available_replicas] == [deployment.replicas; 3]
        && status.observed_generation >= deployment.metadata.generation
}

/// Whether there are more updated replicas, fewer old ones, or more that are ready or available.
fn has_progressed(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| i64::from(status.replicas) - i64::from(status.updated_replicas);
    after.updated_replicas > before.updated_replicas
        || old(after) < old(before)
        || after.ready_replicas > before.ready_replicas
        || after.available_replicas > before.available_replicas
}

fn has_timed_out(conditions: &Conditions, deadline: SignedDuration, now: Timestamp) -> bool {
    let Some(progress) = conditions.get(PROGRESSING) else { return false };
    if progress.reason == Reason::NewReplicaSetAvailable.as_str() {
        return false;
    }
    progress.reason == Reason::ProgressDeadlineExceeded.as_str()
        || progress.last_update_time.is_none_or(|updated| after(updated, deadline) < now)
}

/// The failure of the new replica set, or else of the oldest that has one.
fn failure_of(basis: &StatusInput<'_>) -> Option<Condition> {
    let failure = basis.new.iter().chain(&basis.old).find_map(|set| find(&set.status.conditions, REPLICA_FAILURE))?;
    Some(Condition { last_update_time: failure.last_transition_time, ..failure.clone() })
}

/// When a rollout without progress is reconciled again: a second after its deadline.
pub(super) fn recheck_at(deployment: &DeploymentView, status: &DeploymentStatus, now: Timestamp) -> Option<Timestamp> {
    let deadline = progress_deadline(deployment)?;
    let progress = find(&status.conditions, PROGRESSING)?;
    let is = |reason: Reason| progress.reason == reason.as_str();
    if is_complete(deployment, status) || is(Reason::ProgressDeadlineExceeded) || is(Reason::NewReplicaSetAvailable) {
        return None;
    }
    Some(after(after(progress.last_update_time?, deadline).max(now), SignedDuration::from_secs(1)))
}

fn after(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.saturating_add(duration).expect("a duration without months adds to any time")
}

/// The whole deployment with the status, and the revision if one is given; unknown fields stay.
pub(super) fn with_status(
    current: &Deployment,
    status: &DeploymentStatus,
    revision: Option<&str>,
) -> Result<Document, EditError> {
    let mut document = current.document.clone();
    if let Some(revision) = revision {
        document.set(&["metadata", "annotations", REVISION], revision)?;
    }
    document.set(&["status", "observedGeneration"], &status.observed_generation)?;
    for (name, count) in [
        ("replicas", status.replicas),
        ("updatedReplicas", status.updated_replicas),
        ("readyReplicas", status.ready_replicas),
        ("availableReplicas", status.available_replicas),
        ("unavailableReplicas", status.unavailable_replicas),
    ] {
        document.set(&["status", name], &count)?;
    }
    for (name, count) in
        [("terminatingReplicas", status.terminating_replicas), ("collisionCount", status.collision_count)]
    {
        match count {
            Some(count) => document.set(&["status", name], &count)?,
            None => document.remove(&["status", name])?,
        }
    }
    for present in &current.status.conditions {
        if find(&status.conditions, &present.type_).is_none() {
            document.remove_condition(&present.type_)?;
        }
    }
    for condition in &status.conditions {
        // An unchanged condition keeps its place and its unknown fields.
        if find(&current.status.conditions, &condition.type_) != Some(condition) {
            document.put_condition(condition)?;
        }
    }
    Ok(document)
}
