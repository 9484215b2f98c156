//! Errors of adopting and releasing objects.

use jiff::Timestamp;
use kcm_api::{ObjectKey, Resource, Uid};
use kcm_client::ApiError;

use crate::reconcile::{Class, ReconcileError};

/// The owner in the cache differs from the owner in the API server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StaleOwner {
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
        /// The deletion timestamp of the owner.
        since: Timestamp,
    },
}

/// An object that could not be adopted or released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectClaimError {
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
        /// The owner that was checked.
        owner: ObjectKey,
        /// The difference from the cached owner.
        #[source]
        cause: StaleOwner,
    },
}

/// Claims of objects that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot claim {count} of the {plural}; the first error is the cause")]
pub struct ClaimError {
    count: usize,
    plural: String,
    #[source]
    first: ObjectClaimError,
}

impl ClaimError {
    /// The error of all claims; absent if none failed.
    pub(super) fn of(resource: &Resource, errors: Vec<ObjectClaimError>) -> Option<Self> {
        let count = errors.len();
        errors.into_iter().next().map(|first| Self { count, plural: resource.plural.to_string(), first })
    }
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
                Class::from(error)
            }
            ObjectClaimError::StaleOwner { .. } => Class::Conflict,
        };
        Self::new(class, error)
    }
}
