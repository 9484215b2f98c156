//! The requests: the status of a budget, and the condition of a pod.

use kcm_api::views::{Pod, PodDisruptionBudget, PodDisruptionBudgetStatus};
use kcm_api::{EditError, KnownView as _};
use kcm_framework::client::{ApiError, Patch, Payload, Subresource};
use kcm_framework::{Class, ReconcileError, Session};

use super::stale::reset;
use super::status::{AllowedReason, with_status};

/// The status of a budget could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum StatusError {
    /// The budget is not what the API server should send.
    #[error("cannot edit the status of the pod disruption budget")]
    Edit(#[source] EditError),
    /// The request failed.
    #[error("{}", .0.message())]
    Request(#[source] ApiError),
}

impl StatusError {
    /// Whether the API server has refused the status for another reason than that the budget has changed.
    pub(super) fn is_refused(&self) -> bool {
        match self {
            Self::Edit(_) => false,
            Self::Request(error) => error.status().is_some() && !error.is_conflict() && !error.response_lost(),
        }
    }
}

impl From<StatusError> for ReconcileError {
    fn from(error: StatusError) -> Self {
        let class = match &error {
            StatusError::Edit(_) => Class::Terminal,
            StatusError::Request(error) => Class::from(error),
        };
        Self::new(class, error)
    }
}

/// Writes the status to the state of the budget that it was computed from: the API server refuses it where an eviction was
/// admitted meanwhile. A budget that is gone is no error.
pub(super) async fn write_status(
    session: &Session,
    budget: &PodDisruptionBudget,
    status: &PodDisruptionBudgetStatus,
    reason: &AllowedReason,
) -> Result<(), StatusError> {
    let document = with_status(budget, status, reason, session.now()).map_err(StatusError::Edit)?;
    let resource = const { &PodDisruptionBudget::RESOURCE };
    match session.put_document(resource, &budget.metadata.key, Subresource::Status, &document).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(StatusError::Request(error)),
    }
}

/// Makes the condition `DisruptionTarget` of a pod false. A pod that is gone is no error.
pub(super) async fn reset_condition(session: &Session, pod: &Pod) -> Result<(), ApiError> {
    let patch = Patch::Strategic(Payload::json(&reset(pod, session.now())));
    match session.raw_patch(const { &Pod::RESOURCE }, &pod.metadata.key, Subresource::Status, patch).await {
        Ok(_) => {
            tracing::info!(v = 2, pod = %pod.metadata.key, "Reset stale DisruptionTarget condition to False");
            Ok(())
        }
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}
