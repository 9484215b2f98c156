//! The errors of entries of Pods and groups.

use kcm_framework::api::ObjectKey;
use kcm_framework::client::ApiError;
use kcm_framework::{Class, ReconcileError};

/// The claim of an entry could not be found or created. Events show the texts, which are upstream's.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    #[error("resource claim template \"{template}\": resourceclaimtemplate.resource.k8s.io \"{template}\" not found")]
    NoTemplate { template: String },
    #[error("admin access is requested, but the feature is disabled")]
    AdminAccess,
    #[error("template includes a prioritized list of subrequests, but the feature is disabled")]
    PrioritizedList,
    #[error("claim {entry} is a PodGroup claim but the DRAWorkloadResourceClaims feature is disabled")]
    OfGroup { entry: String },
    #[error(
        "checking for claim before creating it: {kind} \"{owner}\", spec.resourceClaim \"{entry}\": none of the \
         supported fields are set"
    )]
    Unsupported { kind: &'static str, owner: ObjectKey, entry: String },
    #[error("checking claim existence: {}", .0.message())]
    Read(ApiError),
    // The name of a claim that is not created yet is empty.
    #[error("create ResourceClaim : {}", .0.message())]
    Create(ApiError),
}

impl From<EntryError> for ReconcileError {
    fn from(error: EntryError) -> Self {
        let class = match &error {
            EntryError::Read(error) | EntryError::Create(error) => Class::from(error),
            EntryError::NoTemplate { .. } | EntryError::AdminAccess | EntryError::PrioritizedList => Class::Transient,
            // Only a restart with other feature gates, or another object, helps.
            EntryError::OfGroup { .. } | EntryError::Unsupported { .. } => Class::Terminal,
        };
        Self::new(class, error)
    }
}

/// A Pod whose claims cannot be processed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PodError {
    #[error("the pod is a member of the pod group {group}, but the feature GenericWorkload is disabled")]
    GroupsDisabled { group: String },
    #[error("the pod group {0} of the pod does not exist")]
    NoGroup(ObjectKey),
    #[error("the claim {claim} was not created for the pod {pod}")]
    Foreign { claim: ObjectKey, pod: ObjectKey },
}
