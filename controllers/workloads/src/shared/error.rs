//! What goes wrong in several controllers, and what follows.

use jiff::Timestamp;
use kcm_api::{ObjectKey, Uid};
use kcm_framework::client::{ApiError, ErrorClass};
use kcm_framework::{Class, ReconcileError};

/// The cache showed an object that the API server does not have any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Behind {
    /// Another one has its name.
    #[error("the original is gone: got uid {got}, wanted {wanted}")]
    Replaced {
        /// The uid of the one that is there.
        got: Uid,
        /// The uid that the cache showed.
        wanted: Uid,
    },
    /// It is being deleted.
    #[error("it has been deleted at {since}")]
    Terminating {
        /// Since when.
        since: Timestamp,
    },
}

/// An object that could not be adopted or released.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectClaimError {
    /// The adoption was refused.
    #[error("cannot adopt an object")]
    Adopt(#[source] ApiError),
    /// The release was refused.
    #[error("cannot release an object")]
    Release(#[source] ApiError),
    /// Nothing could be adopted, as nobody knows whether the owner is still there.
    #[error("cannot adopt objects without having checked their owner")]
    Recheck(#[source] ApiError),
    /// Nothing is adopted any more.
    #[error("cannot adopt objects for {owner}")]
    Behind {
        /// The owner.
        owner: ObjectKey,
        /// Why.
        #[source]
        behind: Behind,
    },
}

/// Objects that could not be adopted or released, so that nobody knows which there are.
#[derive(Debug, thiserror::Error)]
#[error("cannot claim {count} of the {plural}; the first error is the cause")]
pub(crate) struct ClaimError {
    count: usize,
    plural: &'static str,
    #[source]
    first: ObjectClaimError,
}

impl ClaimError {
    /// The error of a whole claim; absent where nothing failed.
    pub(crate) fn of(plural: &'static str, errors: Vec<ObjectClaimError>) -> Option<Self> {
        let count = errors.len();
        errors.into_iter().next().map(|first| Self { count, plural, first })
    }
}

/// The class of an error of the API, as far as retries go.
///
/// What is refused now may be admitted later without the owner changing: by another quota, limit range or webhook.
/// So nothing that the API server says is final.
pub(crate) const fn class_of(class: ErrorClass) -> Class {
    match class {
        ErrorClass::Transient | ErrorClass::Gone | ErrorClass::Terminal => Class::Transient,
        ErrorClass::Conflict | ErrorClass::NotFound => Class::Conflict,
        ErrorClass::Forbidden => Class::Forbidden,
    }
}

/// The error, to be tried again.
pub(crate) fn retried(error: ApiError) -> ReconcileError {
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
            ObjectClaimError::Adopt(error) | ObjectClaimError::Release(error) | ObjectClaimError::Recheck(error) => {
                class_of(error.class())
            }
            ObjectClaimError::Behind { .. } => Class::Conflict,
        };
        Self::new(class, error)
    }
}
