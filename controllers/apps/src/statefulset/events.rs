//! The events of a `StatefulSet`.

use kcm_framework::events::{Event, EventText};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Update,
    Delete,
}

/// Events; `set` is the name of the `StatefulSet`, and `error` the message of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StatefulSetEvent {
    /// A pod was created, updated or deleted.
    Pod { verb: Verb, pod: String, set: String, error: Option<String> },
    /// A claim of a pod was created.
    ClaimCreated { claim: String, pod: String, set: String, error: Option<String> },
    /// The update strategy is not carried out.
    UnknownStrategy { message: String },
    /// Another controller manages a claim.
    ConflictingController { claim: String },
}

impl Verb {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Delete => "Delete",
        }
    }

    const fn success(self) -> &'static str {
        match self {
            Self::Create => "SuccessfulCreate",
            Self::Update => "SuccessfulUpdate",
            Self::Delete => "SuccessfulDelete",
        }
    }

    const fn failure(self) -> &'static str {
        match self {
            Self::Create => "FailedCreate",
            Self::Update => "FailedUpdate",
            Self::Delete => "FailedDelete",
        }
    }
}

impl Event for StatefulSetEvent {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::Pod { verb, pod, set, error: None } => EventText::normal(
                verb.success(),
                format!("{} Pod {pod} in StatefulSet {set} successful", verb.as_str()),
            ),
            Self::Pod { verb, pod, set, error: Some(error) } => EventText::warning(
                verb.failure(),
                format!("{} Pod {pod} in StatefulSet {set} failed error: {error}", verb.as_str()),
            ),
            Self::ClaimCreated { claim, pod, set, error: None } => EventText::normal(
                "SuccessfulCreate",
                format!("Create Claim {claim} Pod {pod} in StatefulSet {set} success"),
            ),
            Self::ClaimCreated { claim, pod, set, error: Some(error) } => EventText::warning(
                "FailedCreate",
                format!("Create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {error}"),
            ),
            Self::UnknownStrategy { message } => EventText::warning("UnknownStrategy", message.as_str()),
            // The spelling is upstream's.
            Self::ConflictingController { claim } => EventText::warning(
                "ConflictingController",
                format!(
                    "PersistentVolumeClaim {claim} has a conflicting OwnerReference that acts as a manging controller, \
                     the retention policy is ignored for this claim"
                ),
            ),
        }
    }
}
