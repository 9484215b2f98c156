//! The requests: the condition of a Pod, then its deletion; the status of a rule.

use jiff::Timestamp;
use kcm_framework::api::time::format_seconds;
use kcm_framework::api::views::{Pod, PodDisruption};
use kcm_framework::api::{Condition, KnownView as _, Resource};
use kcm_framework::client::{ApiError, Patch, Payload, ResponseExt as _};
use kcm_framework::{Delete, Session};
use serde_json::{Value, json};

use super::views::DeviceTaintRule;

/// The reason of the condition `DisruptionTarget`.
const REASON: &str = "DeletionByDeviceTaintManager";

/// The field manager of the status of rules.
const FIELD_MANAGER: &str = "device-taint-eviction-controller";

const RULES: &Resource = &DeviceTaintRule::RESOURCE;

/// Evicts the Pod. Returns `false` if it was deleted or recreated, which is no error.
///
/// The condition comes first: the Job controller reads it when it decides if the Pod counts as failed.
pub(super) async fn evict(session: &Session, pod: &Pod, disruption: &PodDisruption) -> Result<bool, ApiError> {
    if let Some(patch) = disrupted_status(pod, disruption, session.now()) {
        let patched = session.patch_status(pod, Patch::Strategic(Payload::json(&patch))).await;
        let is_deleted = |error: &ApiError| error.is_not_found() || error.is_other_object();
        if patched.ignore(is_deleted)?.is_none() {
            return Ok(false);
        }
    }
    let deleted = session.delete(pod, Delete::default()).await.ignore(ApiError::is_other_object)?;
    Ok(deleted.is_some())
}

/// The strategic merge patch of the status; `None` if the Pod has the condition.
///
/// A condition that is true keeps its transition time.
pub(super) fn disrupted_status(pod: &Pod, disruption: &PodDisruption, now: Timestamp) -> Option<Value> {
    if disruption.disruption_target_reason.as_deref() == Some(REASON) {
        return None;
    }
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": REASON,
        "message": "Device Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": format_seconds(disruption.disruption_target_since.unwrap_or(now)),
    });
    Some(json!({ "metadata": { "uid": pod.metadata.uid }, "status": { "conditions": [condition] } }))
}

/// Applies the condition of a rule.
pub(super) async fn set_progress(
    session: &Session,
    rule: &DeviceTaintRule,
    condition: &Condition,
) -> Result<(), ApiError> {
    let mut applied = json!({
        "type": condition.type_,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": condition.last_transition_time.map(format_seconds),
    });
    if condition.observed_generation > 0 {
        applied["observedGeneration"] = json!(condition.observed_generation);
    }
    let configuration = json!({
        "apiVersion": RULES.api_version(),
        "kind": RULES.kind,
        "metadata": { "name": rule.metadata.key.name(), "uid": rule.metadata.uid },
        "status": { "conditions": [applied] },
    });
    let applied = session.of(RULES).patch_status(&rule.metadata.key, Patch::apply(FIELD_MANAGER, &configuration)).await;
    applied.ignore(|error: &ApiError| error.is_not_found() || error.is_other_object())?;
    Ok(())
}
