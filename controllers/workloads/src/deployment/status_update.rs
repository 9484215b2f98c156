//! What a deployment says after a reconcile, and what it says of what has just happened to it.

use jiff::Timestamp;
use kcm_api::views::{Deployment, DeploymentStatus, DeploymentView};

use super::conditions::{Conditions, PROGRESSING, Reason};
use super::status::progress_deadline;

/// What a deployment says of itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Report {
    /// Its status.
    pub(super) status: DeploymentStatus,
    /// Its revision, where that changes.
    pub(super) revision: Option<String>,
}

impl Report {
    /// Whether it says anything that is not said yet.
    pub(super) fn is_news(&self, deployment: &Deployment) -> bool {
        self.revision.is_some() || self.status != deployment.status
    }
}

/// The replica set for the present template, as far as `Progressing` tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewSetIs<'a> {
    /// There is none.
    Missing,
    /// It was there.
    Found(&'a str),
    /// It is being made.
    Made(&'a str),
}

/// The conditions told, and what has just happened: pause, resumption, a new replica set.
pub(super) fn conditions_with_news(deployment: &DeploymentView, new: NewSetIs<'_>, now: Timestamp) -> Conditions {
    let mut conditions = Conditions::of(&deployment.status.conditions);
    if progress_deadline(deployment).is_none() {
        return conditions;
    }
    // A rollout that has failed stays failed: a pause does not mend it.
    let failed = conditions.progress_is(Reason::ProgressDeadlineExceeded);
    if !failed && !deployment.metadata.is_terminating() {
        let told = conditions.progress_is(Reason::DeploymentPaused);
        match (deployment.paused, told) {
            (true, false) => conditions.put(Reason::DeploymentPaused.at(now, "Deployment is paused")),
            (false, true) => conditions.put(Reason::DeploymentResumed.at(now, "Deployment is resumed")),
            (true, true) | (false, false) => {}
        }
    }
    match new {
        NewSetIs::Made(name) => {
            let message = format!("Created new replica set \"{name}\"");
            conditions.put(Reason::NewReplicaSetCreated.at(now, message));
        }
        NewSetIs::Found(name) if conditions.get(PROGRESSING).is_none() => {
            conditions.put(Reason::FoundNewReplicaSet.at(now, format!("Found new replica set \"{name}\"")));
        }
        NewSetIs::Found(_) | NewSetIs::Missing => {}
    }
    conditions
}

/// What the deployment says when its selector is empty: that it was looked at.
pub(super) fn report_everything(deployment: &DeploymentView) -> Report {
    let mut status = deployment.status.clone();
    status.observed_generation = status.observed_generation.max(deployment.metadata.generation);
    Report { status, revision: None }
}

/// What the deployment says when no replica set could be made for its template; nothing where nobody asks.
pub(super) fn report_failed_creation(deployment: &DeploymentView, message: &str, now: Timestamp) -> Option<Report> {
    progress_deadline(deployment)?;
    let mut status = deployment.status.clone();
    let mut conditions = Conditions::of(&status.conditions);
    conditions.put(Reason::ReplicaSetCreateError.at(now, message));
    status.conditions = conditions.into_boxed_slice();
    Some(Report { status, revision: None })
}

/// What the deployment says when the name of its replica set is taken: next time it will be another one.
pub(super) fn report_collision(deployment: &DeploymentView) -> Report {
    let mut status = deployment.status.clone();
    status.collision_count = Some(status.collision_count.unwrap_or(0).saturating_add(1));
    Report { status, revision: None }
}
