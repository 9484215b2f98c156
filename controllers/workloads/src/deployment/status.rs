//! What a deployment says of itself.

use jiff::{SignedDuration, Timestamp};
use kcm_api::views::{Deployment, DeploymentStatus, DeploymentView, ReplicaSetStatus};
use kcm_api::{Condition, Document, EditError};

use super::annotations::REVISION;
use super::conditions::{Conditions, PROGRESSING, REPLICA_FAILURE, Reason, find};
use super::rollout::Limits;
use super::settings::Settings;

/// One replica set as a status counts it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// `spec.replicas`.
    pub(super) desired: i32,
    /// What it says of itself.
    pub(super) status: &'a ReplicaSetStatus,
}

/// What a status is made from: the replica sets as they were before they were scaled.
#[derive(Debug, Clone)]
pub(super) struct Basis<'a> {
    /// The deployment.
    pub(super) deployment: &'a DeploymentView,
    /// Its limits.
    pub(super) limits: &'a Limits,
    /// All but the new replica set.
    pub(super) old: Vec<Counted<'a>>,
    /// The new one, which may have been made just now.
    pub(super) new: Option<Counted<'a>>,
}

/// How much a status tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Counts and availability: the deployment is scaled, paused or deleted.
    Counts,
    /// Progress and failures as well: the deployment rolls.
    Rollout,
}

/// The status at `now`, from `conditions` on; it is worth writing if it differs from the one that the deployment has.
pub(super) fn status(
    basis: &Basis<'_>,
    scope: Scope,
    mut conditions: Conditions,
    settings: Settings,
    now: Timestamp,
) -> DeploymentStatus {
    let mut status = counts(basis, settings);
    let reason = if i64::from(status.available_replicas) >= i64::from(basis.limits.min_available()) {
        Reason::MinimumReplicasAvailable.at(now, "Deployment has minimum availability.")
    } else {
        Reason::MinimumReplicasUnavailable.at(now, "Deployment does not have minimum availability.")
    };
    conditions.put(reason);
    if scope == Scope::Rollout {
        tell_progress(basis, &status, &mut conditions, now);
        match failure_of(basis) {
            Some(failure) => conditions.put(failure),
            None => conditions.remove(REPLICA_FAILURE),
        }
    }
    status.conditions = conditions.into_boxed_slice();
    status
}

fn counts(basis: &Basis<'_>, settings: Settings) -> DeploymentStatus {
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
    // There may be more available than desired while old sets shrink.
    status.unavailable_replicas = desired.saturating_sub(available).max(0);
    status.terminating_replicas = if settings.terminating_replicas { terminating(all()) } else { None };
    status
}

/// The sum, unless a replica set that was looked at by its controller does not count them.
fn terminating<'a>(sets: impl Iterator<Item = &'a Counted<'a>>) -> Option<i32> {
    let counted = sets.map(|set| match set.status.terminating_replicas {
        None if set.status.observed_generation == 0 => Some(0),
        counted => counted,
    });
    counted.sum()
}

fn tell_progress(basis: &Basis<'_>, status: &DeploymentStatus, conditions: &mut Conditions, now: Timestamp) {
    let deployment = basis.deployment;
    let Some(deadline) = progress_deadline(deployment) else {
        conditions.remove(PROGRESSING);
        return;
    };
    // A rollout that has ended does not begin again because pods are lost.
    if status.replicas == status.updated_replicas && conditions.progress_is(Reason::NewReplicaSetAvailable) {
        return;
    }
    let what = basis.new.map_or_else(
        || format!("Deployment \"{}\"", deployment.metadata.key.name()),
        |new| format!("ReplicaSet \"{}\"", new.name),
    );
    if is_complete(deployment, status) {
        conditions.put(Reason::NewReplicaSetAvailable.at(now, format!("{what} has successfully progressed.")));
    } else if has_progressed(&deployment.status, status) {
        // Told anew even if told already: the deadline begins again.
        conditions.renew(Reason::ReplicaSetUpdated.at(now, format!("{what} is progressing.")));
    } else if has_timed_out(conditions, deadline, now) {
        conditions.put(Reason::ProgressDeadlineExceeded.at(now, format!("{what} has timed out progressing.")));
    }
}

/// How long nothing may happen; absent where nobody asks, as with the largest number.
pub(super) fn progress_deadline(deployment: &DeploymentView) -> Option<SignedDuration> {
    let seconds = deployment.progress_deadline_seconds.filter(|&seconds| seconds != i32::MAX)?;
    Some(SignedDuration::from_secs(seconds.into()))
}

/// Whether all replicas are updated and available, no old one is left, and the status is of the latest generation.
pub(super) fn is_complete(deployment: &DeploymentView, status: &DeploymentStatus) -> bool {
    [status.updated_replicas, status.replicas, status.available_replicas] == [deployment.replicas; 3]
        && status.observed_generation >= deployment.metadata.generation
}

/// Whether there are more new pods, fewer old ones, or more that are ready or available.
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
        || progress.last_update_time.is_none_or(|told| after(told, deadline) < now)
}

/// The failure of the new replica set, else that of the oldest that has one.
fn failure_of(basis: &Basis<'_>) -> Option<Condition> {
    let failure = basis.new.iter().chain(&basis.old).find_map(|set| find(&set.status.conditions, REPLICA_FAILURE))?;
    Some(Condition { last_update_time: failure.last_transition_time, ..failure.clone() })
}

/// When a rollout without progress is to be looked at again: a second after its deadline.
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

/// The whole deployment with `status` in it, and of `revision` where one is given; the rest stays as it is.
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
    for told in &current.status.conditions {
        if find(&status.conditions, &told.type_).is_none() {
            document.remove_condition(&told.type_)?;
        }
    }
    for condition in &status.conditions {
        // One that stays as it was told keeps its place, and whatever else it says.
        if find(&current.status.conditions, &condition.type_) != Some(condition) {
            document.put_condition(condition)?;
        }
    }
    Ok(document)
}
