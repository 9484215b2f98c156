//! What a reconcile can fail with, and what follows.

use kcm_framework::client::ApiError;
use kcm_framework::{Class, ReconcileError};

use super::plan::Refusal;
use super::status::{Failure, FailureReason};
use crate::shared::error::class_of;

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
