//! The errors of a reconcile, and their classes.

use kcm_framework::client::ApiError;
use kcm_framework::{Class, ReconcileError};

use super::plan::InvalidTemplate;
use super::status::{Failure, FailureReason};

/// A change of the number of pods that failed: the first error of several.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScaleError {
    /// A pod could not be created.
    #[error("cannot create all missing pods")]
    Create(#[source] ApiError),
    /// No pod can be created from the template.
    #[error("cannot create the missing pods")]
    InvalidTemplate(#[source] InvalidTemplate),
    /// A pod could not be deleted.
    #[error("cannot delete all surplus pods")]
    Delete(#[source] ApiError),
    /// A pod to delete was recreated under the same name.
    #[error("cannot delete a pod that was recreated under the same name")]
    Replaced(#[source] ApiError),
}

impl ScaleError {
    /// Returns the failure that the status reports; `None` if only the cache was stale.
    pub(super) fn failure(&self) -> Option<Failure> {
        let (reason, message) = match self {
            Self::Create(error) => (FailureReason::FailedCreate, error.message()),
            Self::InvalidTemplate(error) => (FailureReason::FailedCreate, error.to_string()),
            Self::Delete(error) => (FailureReason::FailedDelete, format!("unable to delete pods: {}", error.message())),
            Self::Replaced(_) => return None,
        };
        Some(Failure { reason, message })
    }
}

impl From<ScaleError> for ReconcileError {
    fn from(error: ScaleError) -> Self {
        let class = match &error {
            ScaleError::Create(error) | ScaleError::Delete(error) | ScaleError::Replaced(error) => Class::from(error),
            // Only a change of the template helps.
            ScaleError::InvalidTemplate(_) => Class::Terminal,
        };
        Self::new(class, error)
    }
}
