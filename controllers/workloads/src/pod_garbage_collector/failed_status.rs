//! The patch that makes a pod a failed one before it is deleted.

use jiff::Timestamp;
use kcm_api::views::{Pod, PodDisruption};
use serde_json::{Value, json};

use super::plan::Reason;

/// The strategic merge patch of the status; absent where the pod has ended already.
///
/// A pod without a kubelet would stay in its phase for ever, while controllers, finalizers of jobs above all, wait for its
/// end. The condition `DisruptionTarget` says of an orphan that its node is the reason. One that is true already keeps the
/// time since when.
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
