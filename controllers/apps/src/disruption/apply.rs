//! The requests: the status of a PodDisruptionBudget, and the condition of a Pod.

use kcm_framework::Session;
use kcm_framework::api::Document;
use kcm_framework::api::views::{Pod, PodDisruptionBudget};
use kcm_framework::client::{ApiError, Patch, Payload, ResponseExt as _};

use super::stale::reset;

/// Updates the status of the budget in the version that the status was computed from: the API server refuses it if an
/// eviction was admitted meanwhile. A budget that does not exist is no error.
pub(super) async fn update_status(
    session: &Session,
    budget: &PodDisruptionBudget,
    document: &Document,
) -> Result<(), ApiError> {
    session.update_status(budget, document).await.ignore_not_found()?;
    Ok(())
}

/// Makes the condition `DisruptionTarget` of a Pod false. A Pod that does not exist is no error.
pub(super) async fn reset_condition(session: &Session, pod: &Pod) -> Result<(), ApiError> {
    let patch = Patch::Strategic(Payload::json(&reset(pod, session.now())));
    if session.patch_status(pod, patch).await.ignore_not_found()?.is_some() {
        tracing::info!(v = 2, pod = %pod.metadata.key, "Reset stale DisruptionTarget condition to False");
    }
    Ok(())
}
