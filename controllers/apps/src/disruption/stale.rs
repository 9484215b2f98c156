//! Pods with a stale condition `DisruptionTarget`: it is true, and the pod is not deleted.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::time::format_seconds;
use kcm_framework::api::views::{Pod, PodDisruption};
use serde_json::{Value, json};

/// How long a pod may have the condition before it is deleted.
const TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// The reason of the kubelet, after whose condition the termination may take any time.
const BY_KUBELET: &str = "TerminationByKubelet";

/// From `now` until the condition of a pod is stale, zero where it is; absent where the pod has none that becomes stale.
///
/// A condition without a time is stale at once, as upstream.
pub(super) fn stale_after(pod: &Pod, disruption: &PodDisruption, now: Timestamp) -> Option<Duration> {
    let reason = disruption.disruption_target_reason.as_deref()?;
    if pod.metadata.is_terminating() || pod.is_finished() || reason == BY_KUBELET {
        return None;
    }
    let age = disruption.disruption_target_since.map_or(TIMEOUT, |since| now.duration_since(since));
    // A time in the future waits longer.
    Some(Duration::try_from(TIMEOUT.saturating_sub(age)).unwrap_or(Duration::ZERO))
}

/// The strategic merge patch that makes the condition false, of the state of the pod that was read.
///
/// Nothing of the old condition stays, as upstream replaces it whole.
pub(super) fn reset(pod: &Pod, now: Timestamp) -> Value {
    let mut condition = json!({
        "type": "DisruptionTarget",
        "status": "False",
        "reason": null,
        "message": null,
        "lastProbeTime": null,
        "lastTransitionTime": format_seconds(now),
    });
    if pod.metadata.generation > 0 {
        condition["observedGeneration"] = json!(pod.metadata.generation);
    }
    json!({
        "metadata": { "uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version },
        "status": { "conditions": [condition] },
    })
}
