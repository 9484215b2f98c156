//! The errors of a reconcile, and their classes.

use std::fmt;

use kcm_framework::client::ApiError;
use kcm_framework::{Class, ReconcileError};

use super::new_objects::InvalidTemplate;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SyncError {
    /// A claim could not be created, or is being deleted.
    #[error("cannot create the claims of a pod")]
    Claims(#[source] ClaimError),
    /// A pod could not be created.
    #[error("cannot create a pod")]
    CreatePod(#[source] ApiError),
    /// A pod could not be updated.
    #[error("cannot give a pod its identity")]
    UpdatePod(#[source] ApiError),
    /// The owner references of a claim could not be updated.
    #[error("cannot update the owner references of a claim")]
    UpdateClaim(#[source] ApiError),
    /// A pod could not be deleted.
    #[error("cannot delete a pod")]
    DeletePod(#[source] ApiError),
    /// No pod can be created from the template.
    #[error("cannot create a pod from the template")]
    InvalidTemplate(#[source] InvalidTemplate),
}

impl SyncError {
    fn class(&self) -> Class {
        match self {
            Self::CreatePod(error) | Self::UpdatePod(error) | Self::UpdateClaim(error) | Self::DeletePod(error) => {
                Class::from(error)
            }
            Self::Claims(error) => error.class(),
            // Only a change of the template helps.
            Self::InvalidTemplate(_) => Class::Terminal,
        }
    }

    /// Returns this error, or `later` if only `later` is retried.
    pub(super) fn or_sooner(self, later: Self) -> Self {
        if self.class() == Class::Terminal { later } else { self }
    }
}

impl From<SyncError> for ReconcileError {
    fn from(error: SyncError) -> Self {
        Self::new(error.class(), error)
    }
}

/// The claims of a pod that are not there: all that were tried.
#[derive(Debug, Default)]
pub(super) struct ClaimError {
    messages: Vec<String>,
    first: Option<ApiError>,
}

impl ClaimError {
    /// Adds a claim that could not be created.
    pub(super) fn failed(&mut self, claim: &str, error: ApiError) {
        self.messages.push(format!("failed to create PVC {claim}: {}", error.message()));
        self.first.get_or_insert(error);
    }

    /// Adds a claim whose template cannot be read.
    pub(super) fn invalid(&mut self, claim: &str, error: &InvalidTemplate) {
        self.messages.push(format!("failed to create PVC {claim}: {error}"));
    }

    /// Adds a claim that is being deleted.
    pub(super) fn terminating(&mut self, claim: &str) {
        self.messages.push(format!("pvc {claim} is being deleted"));
    }

    /// Adds a claim that exists and cannot be decoded.
    pub(super) fn undecodable(&mut self, claim: &str) {
        self.messages.push(format!("pvc {claim} cannot be decoded"));
    }

    /// The error, if there is one.
    pub(super) fn into_result(self) -> Result<(), Self> {
        if self.messages.is_empty() { Ok(()) } else { Err(self) }
    }

    fn class(&self) -> Class {
        // The end of a claim enqueues the stateful set; one that has other labels does not.
        self.first.as_ref().map_or(Class::Transient, Class::from)
    }
}

impl fmt::Display for ClaimError {
    /// As upstream's aggregated errors: in brackets if there are several.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.messages[..] {
            [message] => f.write_str(message),
            messages => write!(f, "[{}]", messages.join(", ")),
        }
    }
}

impl std::error::Error for ClaimError {}
