//! The conditions of a deployment.

use jiff::Timestamp;
use kcm_framework::api::{Condition, ConditionStatus};

/// Whether enough replicas are available.
pub(super) const AVAILABLE: &str = "Available";
/// Whether the rollout progresses.
pub(super) const PROGRESSING: &str = "Progressing";
/// Whether a replica set cannot create or delete pods.
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The reasons of the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// `Progressing`: the new replica set was created.
    NewReplicaSetCreated,
    /// `Progressing`: the new replica set exists, and the condition did not.
    FoundNewReplicaSet,
    /// `Progressing`: pods were created, deleted, or became ready.
    ReplicaSetUpdated,
    /// `Progressing`: the rollout is complete.
    NewReplicaSetAvailable,
    /// `Progressing`: no progress within the deadline.
    ProgressDeadlineExceeded,
    /// `Progressing`: the deployment is paused.
    DeploymentPaused,
    /// `Progressing`: the deployment is resumed, and the deadline starts.
    DeploymentResumed,
    /// `Progressing`: the new replica set could not be created.
    ReplicaSetCreateError,
    /// `Available`: enough replicas are available.
    MinimumReplicasAvailable,
    /// `Available`: too few replicas are available.
    MinimumReplicasUnavailable,
}

impl Reason {
    /// The reason as the API shows it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::NewReplicaSetCreated => "NewReplicaSetCreated",
            Self::FoundNewReplicaSet => "FoundNewReplicaSet",
            Self::ReplicaSetUpdated => "ReplicaSetUpdated",
            Self::NewReplicaSetAvailable => "NewReplicaSetAvailable",
            Self::ProgressDeadlineExceeded => "ProgressDeadlineExceeded",
            Self::DeploymentPaused => "DeploymentPaused",
            Self::DeploymentResumed => "DeploymentResumed",
            Self::ReplicaSetCreateError => "ReplicaSetCreateError",
            Self::MinimumReplicasAvailable => "MinimumReplicasAvailable",
            Self::MinimumReplicasUnavailable => "MinimumReplicasUnavailable",
        }
    }

    const fn condition(self) -> (&'static str, ConditionStatus) {
        match self {
            Self::NewReplicaSetCreated
            | Self::FoundNewReplicaSet
            | Self::ReplicaSetUpdated
            | Self::NewReplicaSetAvailable => (PROGRESSING, ConditionStatus::True),
            Self::ProgressDeadlineExceeded | Self::ReplicaSetCreateError => (PROGRESSING, ConditionStatus::False),
            Self::DeploymentPaused | Self::DeploymentResumed => (PROGRESSING, ConditionStatus::Unknown),
            Self::MinimumReplicasAvailable => (AVAILABLE, ConditionStatus::True),
            Self::MinimumReplicasUnavailable => (AVAILABLE, ConditionStatus::False),
        }
    }

    /// A condition of this reason that changed at `now`.
    pub(super) fn at(self, now: Timestamp, message: impl Into<Box<str>>) -> Condition {
        let (type_, status) = self.condition();
        Condition {
            type_: type_.into(),
            status,
            last_update_time: Some(now),
            last_transition_time: Some(now),
            reason: self.as_str().into(),
            message: message.into(),
            ..Condition::default()
        }
    }
}

/// The conditions of a status, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Conditions(Vec<Condition>);

impl Conditions {
    /// A copy of the conditions of a status.
    pub(super) fn of(conditions: &[Condition]) -> Self {
        Self(conditions.to_vec())
    }

    /// The condition of that type.
    pub(super) fn get(&self, type_: &str) -> Option<&Condition> {
        find(&self.0, type_)
    }

    /// Whether the condition `Progressing` has that reason.
    pub(super) fn progress_is(&self, reason: Reason) -> bool {
        self.get(PROGRESSING).is_some_and(|condition| condition.reason == reason.as_str())
    }

    /// Sets a condition, unless the present one has its status and reason.
    pub(super) fn set(&mut self, condition: Condition) {
        let same = |present: &Condition| present.status == condition.status && present.reason == condition.reason;
        if !self.get(&condition.type_).is_some_and(same) {
            self.replace(condition);
        }
    }

    /// Replaces a condition, which renews its update time. The transition time stays while the status does.
    pub(super) fn replace(&mut self, mut condition: Condition) {
        if let Some(present) = self.get(&condition.type_).filter(|present| present.status == condition.status) {
            condition.last_transition_time = present.last_transition_time;
        }
        self.remove(&condition.type_);
        self.0.push(condition);
    }

    /// Removes the condition of that type.
    pub(super) fn remove(&mut self, type_: &str) {
        self.0.retain(|condition| condition.type_ != type_);
    }

    /// The conditions, as a status holds them.
    pub(super) fn into_boxed_slice(self) -> Box<[Condition]> {
        self.0.into_boxed_slice()
    }
}

/// The condition of that type.
pub(super) fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}
