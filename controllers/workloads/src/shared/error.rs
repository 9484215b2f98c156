//! Errors of claims, and the classes of errors for retries.

use jiff::Timestamp;
use kcm_api::{ObjectKey, Uid};
use kcm_framework::client::{ApiError, ErrorClass};
use kcm_framework::{Class, ReconcileError};

/// The cached owner is not the one that the API server has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StaleOwner {
    /// An object was recreated under the same name.
    #[error("the original is gone: got uid {got}, wanted {wanted}")]
    Replaced {
        /// The uid in the API server.
        got: Uid,
        /// The uid in the cache.
        wanted: Uid,
    },
    /// The owner is being deleted.
    #[error("it has been deleted at {since}")]
    Terminating {
        /// The deletion timestamp.
        since: Timestamp,
    },
}

/// An object that could not be adopted or released.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectClaimError {
    /// The request that adopts an object failed.
    #[error("cannot adopt an object")]
    Adopt(#[source] ApiError),
    /// The request that releases an object failed.
    #[error("cannot release an object")]
    Release(#[source] ApiError),
    /// The live read of the owner failed, so that nothing was adopted.
    #[error("cannot adopt objects without having checked their owner")]
    Recheck(#[source] ApiError),
    /// The cached owner is stale, so that nothing was adopted.
    #[error("cannot adopt objects for {owner}")]
    StaleOwner {
        /// The owner.
        owner: ObjectKey,
        /// What changed.
        #[source]
        cause: StaleOwner,
    },
}

/// Claims of objects that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot claim {count} of the {plural}; the first error is the cause")]
pub(crate) struct ClaimError {
    count: usize,
    plural: &'static str,
    #[source]
    first: ObjectClaimError,
}

impl ClaimError {
    /// The error of all claims; absent if none failed.
    pub(crate) fn of(plural: &'static str, errors: Vec<ObjectClaimError>) -> Option<Self> {
        let count = errors.len();
        errors.into_iter().next().map(|first| Self { count, plural, first })
    }
}

/// The class for retries of an error of the API.
///
/// A request that is rejected now may be admitted later without a change of the owner, by another quota, limit range or
/// webhook. So no error of the API server is terminal.
pub(crate) const fn class_of(class: ErrorClass) -> Class {
    match class {
        ErrorClass::Transient | ErrorClass::Gone | ErrorClass::Terminal => Class::Transient,
        ErrorClass::Unavailable => Class::Unavailable,
        ErrorClass::Conflict | ErrorClass::NotFound => Class::Conflict,
        ErrorClass::Forbidden => Class::Forbidden,
    }
}

/// The error of a reconcile that is retried.
pub(crate) fn retryable(error: ApiError) -> ReconcileError {
    ReconcileError::new(class_of(error.class()), error)
}

impl From<StaleOwner> for ReconcileError {
    fn from(error: StaleOwner) -> Self {
        Self::new(Class::Conflict, error)
    }
}

impl From<ClaimError> for ReconcileError {
    fn from(error: ClaimError) -> Self {
        let class = match &error.first {
            ObjectClaimError::Adopt(error) | ObjectClaimError::Release(error) | ObjectClaimError::Recheck(error) => {
                class_of(error.class())
            }
            ObjectClaimError::StaleOwner { .. } => Class::Conflict,
        };
        Self::new(class, error)
    }
}
