//! The events of a Deployment.

use kcm_framework::events::{Event, EventText};

use super::conditions::Reason;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeploymentEvent {
    /// The selector is empty.
    SelectingAll,
    /// A `ReplicaSet` was scaled.
    Scaled {
        name: String,
        from: i32,
        to: i32,
    },
    /// The new `ReplicaSet` could not be created; the message names it and the error.
    CreateFailed {
        message: String,
    },
    RolledBack {
        name: String,
        revision: i64,
    },
    /// A rollback to the last revision was requested, and there is none.
    NoLastRevision,
    /// A rollback to a revision was requested that does not exist.
    NoSuchRevision,
    /// A rollback to a revision was requested whose template the Deployment has.
    TemplateUnchanged {
        name: String,
    },
}

impl Event for DeploymentEvent {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::SelectingAll => EventText::warning(
                "SelectingAll",
                "This deployment is selecting all pods. A non-empty selector is required.",
            ),
            Self::Scaled { name, from, to } => {
                let direction = if from < to { "up" } else { "down" };
                let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
                EventText::normal("ScalingReplicaSet", message)
            }
            Self::CreateFailed { message } => EventText::warning(Reason::ReplicaSetCreateError.as_str(), message),
            Self::RolledBack { name, revision } => EventText::normal(
                "DeploymentRollback",
                format!("Rolled back deployment \"{name}\" to revision {revision}"),
            ),
            Self::NoLastRevision => {
                EventText::warning("DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
            }
            Self::NoSuchRevision => {
                EventText::warning("DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to.")
            }
            Self::TemplateUnchanged { name } => EventText::warning(
                "DeploymentRollbackTemplateUnchanged",
                format!("The rollback revision contains the same template as current deployment \"{name}\""),
            ),
        }
    }
}
