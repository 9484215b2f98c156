//! Single steps of a scheduler and a kubelet on pods.

use jiff::Timestamp;
use kcm_api::ObjectKey;
use kcm_api::time::format_seconds;
use serde_json::{Value, json};

use crate::kinds::PODS;
use crate::sandbox::Sandbox;
use crate::status::Status;

impl Sandbox {
    /// Binds a pod to a node, as a scheduler does.
    pub fn bind_pod(&self, key: &ObjectKey, node: &str) -> Result<(), Status> {
        self.bind(&PODS, key, node).map(drop)
    }

    /// Sets the phase of a pod, as its kubelet does.
    pub fn set_pod_phase(&self, key: &ObjectKey, phase: &str) -> Result<Value, Status> {
        self.patch_status(&PODS, key, &json!({ "status": { "phase": phase } }))
    }

    /// Sets phase `Running` and the `Ready` condition of a pod, with its transition time.
    pub fn set_pod_ready(&self, key: &ObjectKey, ready: bool, since: Timestamp) -> Result<Value, Status> {
        let mut conditions = self
            .get(&PODS, key)
            .and_then(|pod| pod.pointer("/status/conditions").and_then(Value::as_array).cloned())
            .unwrap_or_default();
        conditions.retain(|condition| condition.get("type").is_none_or(|kind| kind != "Ready"));
        conditions.push(json!({
            "type": "Ready",
            "status": if ready { "True" } else { "False" },
            "lastTransitionTime": format_seconds(since),
        }));
        self.patch_status(&PODS, key, &json!({ "status": { "phase": "Running", "conditions": conditions } }))
    }
}
