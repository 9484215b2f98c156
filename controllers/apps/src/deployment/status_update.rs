//! Status updates, and the conditions that describe what the reconcile itself did.

use jiff::Timestamp;
use kcm_framework::api::views::{Deployment, DeploymentStatus, DeploymentView};

use super::conditions::{Conditions, PROGRESSING, Reason};
use super::status::progress_deadline;

/// An update of the status, and of the revision annotation, of a deployment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatusUpdate {
    /// The whole status.
    pub(super) status: DeploymentStatus,
    /// The revision, where it changes.
    pub(super) revision: Option<String>,
}

impl StatusUpdate {
    /// Whether the update changes the deployment.
    pub(super) fn is_needed(&self, deployment: &Deployment) -> bool {
        self.revision.is_some() || self.status != deployment.status
    }
}

/// The state of the new replica set, as the condition `Progressing` reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewReplicaSetState<'a> {
    /// It does not exist.
    Missing,
    /// It exists, by this name.
    Found(&'a str),
    /// The reconcile creates it, by this name.
    Created(&'a str),
}

/// The conditions of the deployment with those that pausing, resuming and a new replica set change.
pub(super) fn updated_conditions(
    deployment: &DeploymentView,
    new: NewReplicaSetState<'_>,
    now: Timestamp,
) -> Conditions {
    let mut conditions = Conditions::of(&deployment.status.conditions);
    if progress_deadline(deployment).is_none() {
        return conditions;
    }
    // A rollout that exceeded its deadline stays failed while it is paused.
    let failed = conditions.progress_is(Reason::ProgressDeadlineExceeded);
    if !failed && !deployment.metadata.is_terminating() {
        let reported_as_paused = conditions.progress_is(Reason::DeploymentPaused);
        match (deployment.paused, reported_as_paused) {
            (true, false) => conditions.set(Reason::DeploymentPaused.at(now, "Deployment is paused")),
            (false, true) => conditions.set(Reason::DeploymentResumed.at(now, "Deployment is resumed")),
            (true, true) | (false, false) => {}
        }
    }
    match new {
        NewReplicaSetState::Created(name) => {
            let message = format!("Created new replica set \"{name}\"");
            conditions.set(Reason::NewReplicaSetCreated.at(now, message));
        }
        NewReplicaSetState::Found(name) if conditions.get(PROGRESSING).is_none() => {
            conditions.set(Reason::FoundNewReplicaSet.at(now, format!("Found new replica set \"{name}\"")));
        }
        NewReplicaSetState::Found(_) | NewReplicaSetState::Missing => {}
    }
    conditions
}

/// The update of a deployment whose selector is empty: the observed generation alone.
pub(super) fn observed_generation_update(deployment: &DeploymentView) -> StatusUpdate {
    let mut status = deployment.status.clone();
    status.observed_generation = status.observed_generation.max(deployment.metadata.generation);
    StatusUpdate { status, revision: None }
}

/// The update of a deployment whose new replica set could not be created; absent without a progress deadline.
pub(super) fn failed_creation_update(
    deployment: &DeploymentView,
    message: &str,
    now: Timestamp,
) -> Option<StatusUpdate> {
    progress_deadline(deployment)?;
    let mut status = deployment.status.clone();
    let mut conditions = Conditions::of(&status.conditions);
    conditions.set(Reason::ReplicaSetCreateError.at(now, message));
    status.conditions = conditions.into_boxed_slice();
    Some(StatusUpdate { status, revision: None })
}

/// The update of a deployment whose new replica set has a taken name: the next reconcile generates another name.
pub(super) fn collision_update(deployment: &DeploymentView) -> StatusUpdate {
    let mut status = deployment.status.clone();
    status.collision_count = Some(status.collision_count.unwrap_or(0).saturating_add(1));
    StatusUpdate { status, revision: None }
}
