//! The conditions of a deployment.

use jiff::Timestamp;
use kcm_api::{Condition, ConditionStatus};

/// Whether enough replicas are available.
pub(super) const AVAILABLE: &str = "Available";
/// Whether the rollout goes on.
pub(super) const PROGRESSING: &str = "Progressing";
/// Whether a replica set fails to create or delete pods.
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Why a condition is as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// `Progressing`: a replica set was created for the template.
    NewReplicaSetCreated,
    /// `Progressing`: there is a replica set for the template, and nobody has said anything yet.
    FoundNewReplicaSet,
    /// `Progressing`: pods came, went, or became ready.
    ReplicaSetUpdated,
    /// `Progressing`: the rollout is complete.
    NewReplicaSetAvailable,
    /// `Progressing`: nothing happened for too long.
    ProgressDeadlineExceeded,
    /// `Progressing`: nobody asks for progress.
    DeploymentPaused,
    /// `Progressing`: progress is asked for again, from now on.
    DeploymentResumed,
    /// `Progressing`: no replica set could be created for the template.
    ReplicaSetCreateError,
    /// `Available`: enough are.
    MinimumReplicasAvailable,
    /// `Available`: not enough are.
    MinimumReplicasUnavailable,
}

impl Reason {
    /// The word that stands in the condition.
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

    /// A condition with this reason.
    pub(super) fn at(self, now: Timestamp, message: impl Into<Box<str>>) -> Condition {
        let (type_, status) = self.condition();
        Condition {
            type_: type_.into(),
            status,
            last_update_time: Some(now),
            last_transition_time: Some(now),
            reason: self.as_str().into(),
            message: message.into(),
        }
    }
}

/// The conditions of a status, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Conditions(Vec<Condition>);

impl Conditions {
    /// Those that are told.
    pub(super) fn of(told: &[Condition]) -> Self {
        Self(told.to_vec())
    }

    /// The condition of that type.
    pub(super) fn get(&self, type_: &str) -> Option<&Condition> {
        find(&self.0, type_)
    }

    /// Whether the condition `Progressing` has that reason.
    pub(super) fn progress_is(&self, reason: Reason) -> bool {
        self.get(PROGRESSING).is_some_and(|condition| condition.reason == reason.as_str())
    }

    /// Tells a condition. One that has this status and this reason already stays as it was told.
    pub(super) fn put(&mut self, condition: Condition) {
        let same = |told: &Condition| told.status == condition.status && told.reason == condition.reason;
        if !self.get(&condition.type_).is_some_and(same) {
            self.renew(condition);
        }
    }

    /// Tells a condition, even one that is told already; since when it has its status is kept.
    pub(super) fn renew(&mut self, mut condition: Condition) {
        if let Some(told) = self.get(&condition.type_).filter(|told| told.status == condition.status) {
            condition.last_transition_time = told.last_transition_time;
        }
        self.remove(&condition.type_);
        self.0.push(condition);
    }

    /// Tells nothing of that type any more.
    pub(super) fn remove(&mut self, type_: &str) {
        self.0.retain(|condition| condition.type_ != type_);
    }

    /// As they stand in a status.
    pub(super) fn into_boxed_slice(self) -> Box<[Condition]> {
        self.0.into_boxed_slice()
    }
}

/// The condition of that type.
pub(super) fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}
