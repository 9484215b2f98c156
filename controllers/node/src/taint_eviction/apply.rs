//! The requests: the condition of a Pod, then its deletion.

use jiff::Timestamp;
use kcm_framework::api::time::format_seconds;
use kcm_framework::api::views::{Pod, PodDisruption};
use kcm_framework::client::{ApiError, Patch, Payload, ResponseExt as _};
use kcm_framework::{Delete, Session};
use serde_json::{Value, json};

/// The reason of the condition `DisruptionTarget`.
const REASON: &str = "DeletionByTaintManager";

/// Evicts the Pod. It is no error if it was deleted or recreated.
///
/// The condition comes first: the Job controller reads it when it decides if the Pod counts as failed.
pub(super) async fn evict(session: &Session, pod: &Pod, disruption: &PodDisruption) -> Result<(), ApiError> {
    if let Some(patch) = disrupted_status(pod, disruption, session.now()) {
        let patched = session.patch_status(pod, Patch::Strategic(Payload::json(&patch))).await;
        let is_deleted = |error: &ApiError| error.is_not_found() || error.is_other_object();
        if patched.ignore(is_deleted)?.is_none() {
            return Ok(());
        }
    }
    session.delete(pod, Delete::default()).await.ignore(ApiError::is_other_object)?;
    Ok(())
}

/// The strategic merge patch of the status; `None` if the Pod has the condition.
///
/// A condition that is true keeps its transition time.
pub(super) fn disrupted_status(pod: &Pod, disruption: &PodDisruption, now: Timestamp) -> Option<Value> {
    if disruption.disruption_target_reason.as_deref() == Some(REASON) {
        return None;
    }
    let since = format_seconds(disruption.disruption_target_since.unwrap_or(now));
    let mut condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": REASON,
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": since,
    });
    if pod.metadata.generation > 0 {
        condition["observedGeneration"] = json!(pod.metadata.generation);
    }
    Some(json!({ "metadata": { "uid": pod.metadata.uid }, "status": { "conditions": [condition] } }))
}
