//! The patch that makes a Pod `Failed` before it is deleted.

use jiff::Timestamp;
use kcm_framework::api::views::{Pod, PodDisruption};
use serde_json::{Value, json};

use super::plan::Reason;

/// The strategic merge patch of the status; `None` if the Pod has ended.
///
/// A Pod without a kubelet would stay in its phase for ever, while controllers wait for its end, as the Job controller does
/// before it removes its finalizer. The condition `DisruptionTarget` of an orphan names the missing Node as the reason. A
/// condition that is true keeps its transition time.
pub(super) fn failed_status(pod: &Pod, disruption: &PodDisruption, reason: Reason, now: Timestamp) -> Option<Value> {
    if pod.is_finished() {
        return None;
    }
    let generation = Some(pod.metadata.generation).filter(|generation| *generation > 0);
    let with_generation = |mut object: Value| {
        if let (Value::Object(fields), Some(generation)) = (&mut object, generation) {
            fields.insert("observedGeneration".to_owned(), json!(generation));
        }
        object
    };
    let mut status = with_generation(json!({ "phase": "Failed" }));
    match reason {
        Reason::Orphaned => {
            let since = disruption.disruption_target_since.unwrap_or(now);
            // As the API serves times: whole seconds.
            let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
            status["conditions"] = json!([with_generation(json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastTransitionTime": since,
            }))]);
        }
        Reason::Terminated | Reason::OutOfService | Reason::Unscheduled => {}
    }
    Some(json!({ "metadata": { "uid": pod.metadata.uid }, "status": status }))
}
