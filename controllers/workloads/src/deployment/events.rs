//! The events of a deployment.

use kcm_framework::events::{EventDetails, EventType};

use super::conditions::Reason;

/// Why an event is recorded, with what its message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventReason {
    /// The selector of the deployment is empty.
    SelectingAll,
    /// A replica set was scaled.
    Scaled {
        /// The name of the replica set.
        name: String,
        /// Its replicas before.
        from: i32,
        /// Its replicas after.
        to: i32,
    },
    /// The new replica set could not be created.
    CreateFailed {
        /// The message, which names the replica set and the error.
        message: String,
    },
    /// The deployment was rolled back.
    RolledBack {
        /// The name of the deployment.
        name: String,
        /// The revision that it was rolled back to.
        revision: i64,
    },
    /// A rollback to the last revision was requested, and there is none.
    NoLastRevision,
    /// A rollback to a revision was requested that does not exist.
    NoSuchRevision,
    /// A rollback to a revision was requested whose template the deployment has.
    TemplateUnchanged {
        /// The name of the deployment.
        name: String,
    },
}

impl EventDetails for EventReason {
    fn event_type(&self) -> EventType {
        match self {
            Self::Scaled { .. } | Self::RolledBack { .. } => EventType::Normal,
            Self::SelectingAll
            | Self::CreateFailed { .. }
            | Self::NoLastRevision
            | Self::NoSuchRevision
            | Self::TemplateUnchanged { .. } => EventType::Warning,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::SelectingAll => "SelectingAll",
            Self::Scaled { .. } => "ScalingReplicaSet",
            Self::CreateFailed { .. } => Reason::ReplicaSetCreateError.as_str(),
            Self::RolledBack { .. } => "DeploymentRollback",
            Self::NoLastRevision | Self::NoSuchRevision => "DeploymentRollbackRevisionNotFound",
            Self::TemplateUnchanged { .. } => "DeploymentRollbackTemplateUnchanged",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::SelectingAll => "This deployment is selecting all pods. A non-empty selector is required.".to_owned(),
            Self::Scaled { name, from, to } => {
                let direction = if from < to { "up" } else { "down" };
                format!("Scaled {direction} replica set {name} from {from} to {to}")
            }
            Self::CreateFailed { message } => message.clone(),
            Self::RolledBack { name, revision } => {
                format!("Rolled back deployment \"{name}\" to revision {revision}")
            }
            Self::NoLastRevision => "Unable to find last revision.".to_owned(),
            Self::NoSuchRevision => "Unable to find the revision to rollback to.".to_owned(),
            Self::TemplateUnchanged { name } => {
                format!("The rollback revision contains the same template as current deployment \"{name}\"")
            }
        }
    }
}
