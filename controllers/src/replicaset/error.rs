//! What a reconcile can fail with, and what follows.

use jiff::Timestamp;
use kcm_api::{ObjectKey, Uid};
use kcm_framework::client::{ApiError, ErrorClass};
use kcm_framework::{Class, ReconcileError};

use super::plan::Refusal;
use super::status::{Failure, FailureReason};

/// The cache showed a replica set that the API server does not have any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Behind {
    /// Another one has its name.
    #[error("the replica set is gone: got uid {got}, wanted {wanted}")]
    Replaced {
        /// The uid of the one that is there.
        got: Uid,
        /// The uid that the cache showed.
        wanted: Uid,
    },
    /// It is being deleted.
    #[error("the replica set has been deleted at {since}")]
    Terminating {
        /// Since when.
        since: Timestamp,
    },
}

/// A pod that could not be adopted or released.
#[derive(Debug, thiserror::Error)]
pub(super) enum PodClaimError {
    /// The adoption was refused.
    #[error("cannot adopt a pod")]
    Adopt(#[source] ApiError),
    /// The release was refused.
    #[error("cannot release a pod")]
    Release(#[source] ApiError),
    /// Nothing could be adopted, as nobody knows whether the replica set is still there.
    #[error("cannot adopt pods without having checked the replica set")]
    Recheck(#[source] ApiError),
    /// Nothing is adopted any more.
    #[error("cannot adopt pods for replica set {owner}")]
    Behind {
        /// The replica set.
        owner: ObjectKey,
        /// Why.
        #[source]
        behind: Behind,
    },
}

/// Pods that could not be adopted or released, so that nobody knows how many there are.
#[derive(Debug, thiserror::Error)]
#[error("cannot claim {count} of the pods; the first error is the cause")]
pub(super) struct ClaimError {
    count: usize,
    #[source]
    first: PodClaimError,
}

/// A change of the number of pods that failed: the first error of several.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScaleError {
    /// A pod could not be created.
    #[error("cannot create all missing pods")]
    Create(#[source] ApiError),
    /// No pod is made from that template.
    #[error("cannot create the missing pods")]
    Refused(#[source] Refusal),
    /// A pod could not be deleted.
    #[error("cannot delete all surplus pods")]
    Delete(#[source] ApiError),
    /// Another pod has the name of one that was to be deleted.
    #[error("cannot delete a pod that is gone, another has its name")]
    Replaced(#[source] ApiError),
}

impl ClaimError {
    /// The error of a whole claim; absent where nothing failed.
    pub(super) fn of(errors: Vec<PodClaimError>) -> Option<Self> {
        let count = errors.len();
        errors.into_iter().next().map(|first| Self { count, first })
    }
}

impl ScaleError {
    /// What the status says about it; nothing where only the cache was behind.
    pub(super) fn failure(&self) -> Option<Failure> {
        let (reason, message) = match self {
            Self::Create(error) => (FailureReason::FailedCreate, error.message()),
            Self::Refused(refusal) => (FailureReason::FailedCreate, refusal.to_string()),
            Self::Delete(error) => (FailureReason::FailedDelete, format!("unable to delete pods: {}", error.message())),
            Self::Replaced(_) => return None,
        };
        Some(Failure { reason, message })
    }
}

/// The class of an error of the API, as far as retries go.
///
/// What is refused now may be admitted later without the replica set changing: by another quota, limit range or
/// webhook. So nothing that the API server says is final.
const fn class_of(class: ErrorClass) -> Class {
    match class {
        ErrorClass::Transient | ErrorClass::Gone | ErrorClass::Terminal => Class::Transient,
        ErrorClass::Conflict | ErrorClass::NotFound => Class::Conflict,
        ErrorClass::Forbidden => Class::Forbidden,
    }
}

/// The error, to be tried again.
pub(super) fn retried(error: ApiError) -> ReconcileError {
    ReconcileError::new(class_of(error.class()), error)
}

impl From<Behind> for ReconcileError {
    fn from(error: Behind) -> Self {
        Self::new(Class::Conflict, error)
    }
}

impl From<ClaimError> for ReconcileError {
    fn from(error: ClaimError) -> Self {
        let class = match &error.first {
            PodClaimError::Adopt(error) | PodClaimError::Release(error) | PodClaimError::Recheck(error) => {
                class_of(error.class())
            }
            PodClaimError::Behind { .. } => Class::Conflict,
        };
        Self::new(class, error)
    }
}

impl From<ScaleError> for ReconcileError {
    fn from(error: ScaleError) -> Self {
        let class = match &error {
            ScaleError::Create(error) | ScaleError::Delete(error) | ScaleError::Replaced(error) => {
                class_of(error.class())
            }
            // Only another template helps.
            ScaleError::Refused(_) => Class::Terminal,
        };
        Self::new(class, error)
    }
}
