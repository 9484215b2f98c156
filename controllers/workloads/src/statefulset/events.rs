//! The events of a stateful set.

use kcm_framework::events::{EventDetails, EventType};

/// What was tried on a pod or a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// It is created.
    Create,
    /// It is updated.
    Update,
    /// It is deleted.
    Delete,
}

impl Verb {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Delete => "Delete",
        }
    }
}

/// Why an event is recorded, with what its message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventReason {
    /// A pod was created, updated or deleted, or that failed.
    Pod {
        /// What was tried.
        verb: Verb,
        /// The name of the pod.
        pod: String,
        /// The name of the stateful set.
        set: String,
        /// The message of the error.
        error: Option<String>,
    },
    /// A claim was created, or that failed.
    ClaimCreated {
        /// The name of the claim.
        claim: String,
        /// The name of its pod.
        pod: String,
        /// The name of the stateful set.
        set: String,
        /// The message of the error.
        error: Option<String>,
    },
    /// Another controller manages a claim.
    ConflictingController {
        /// The name of the claim.
        claim: String,
    },
}

impl EventDetails for EventReason {
    fn event_type(&self) -> EventType {
        match self {
            Self::Pod { error: None, .. } | Self::ClaimCreated { error: None, .. } => EventType::Normal,
            Self::Pod { error: Some(_), .. }
            | Self::ClaimCreated { error: Some(_), .. }
            | Self::ConflictingController { .. } => EventType::Warning,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Pod { verb: Verb::Create, error: None, .. } | Self::ClaimCreated { error: None, .. } => {
                "SuccessfulCreate"
            }
            Self::Pod { verb: Verb::Create, error: Some(_), .. } | Self::ClaimCreated { error: Some(_), .. } => {
                "FailedCreate"
            }
            Self::Pod { verb: Verb::Update, error: None, .. } => "SuccessfulUpdate",
            Self::Pod { verb: Verb::Update, error: Some(_), .. } => "FailedUpdate",
            Self::Pod { verb: Verb::Delete, error: None, .. } => "SuccessfulDelete",
            Self::Pod { verb: Verb::Delete, error: Some(_), .. } => "FailedDelete",
            Self::ConflictingController { .. } => "ConflictingController",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Pod { verb, pod, set, error: None } => {
                format!("{} Pod {pod} in StatefulSet {set} successful", verb.as_str())
            }
            Self::Pod { verb, pod, set, error: Some(error) } => {
                format!("{} Pod {pod} in StatefulSet {set} failed error: {error}", verb.as_str())
            }
            Self::ClaimCreated { claim, pod, set, error: None } => {
                format!("Create Claim {claim} Pod {pod} in StatefulSet {set} success")
            }
            Self::ClaimCreated { claim, pod, set, error: Some(error) } => {
                format!("Create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {error}")
            }
            // The spelling is upstream's.
            Self::ConflictingController { claim } => format!(
                "PersistentVolumeClaim {claim} has a conflicting OwnerReference that acts as a manging controller, the \
                 retention policy is ignored for this claim"
            ),
        }
    }
}
