//! What people are told about a deployment, as events.

use kcm_framework::events::EventType;

use super::conditions::Reason;

/// One thing worth telling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// Its selector is empty.
    SelectingAll,
    /// A replica set was given another size.
    Scaled {
        /// Its name.
        name: String,
        /// Its size before.
        from: i32,
        /// Its size after.
        to: i32,
    },
    /// No replica set could be created for the template.
    CreateFailed {
        /// What failed, and how.
        message: String,
    },
    /// It has the template of an earlier revision again.
    RolledBack {
        /// Its name.
        name: String,
        /// The revision.
        revision: i64,
    },
    /// It was to be rolled back to the last revision, and there is none.
    NoLastRevision,
    /// It was to be rolled back to a revision that there is not.
    NoSuchRevision,
    /// It was to be rolled back to the template that it has.
    TemplateUnchanged {
        /// Its name.
        name: String,
    },
}

impl Notice {
    /// Whether it is as expected.
    pub(super) const fn event_type(&self) -> EventType {
        match self {
            Self::Scaled { .. } | Self::RolledBack { .. } => EventType::Normal,
            Self::SelectingAll
            | Self::CreateFailed { .. }
            | Self::NoLastRevision
            | Self::NoSuchRevision
            | Self::TemplateUnchanged { .. } => EventType::Warning,
        }
    }

    /// The reason of the event.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::SelectingAll => "SelectingAll",
            Self::Scaled { .. } => "ScalingReplicaSet",
            Self::CreateFailed { .. } => Reason::ReplicaSetCreateError.as_str(),
            Self::RolledBack { .. } => "DeploymentRollback",
            Self::NoLastRevision | Self::NoSuchRevision => "DeploymentRollbackRevisionNotFound",
            Self::TemplateUnchanged { .. } => "DeploymentRollbackTemplateUnchanged",
        }
    }

    /// The text of the event.
    pub(super) fn message(&self) -> String {
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
