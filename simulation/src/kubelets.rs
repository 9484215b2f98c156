//! Kubelets that start and stop pods at once.

use kcm_sandbox_apiserver::{ObjectKey, PODS, Sandbox};
use serde_json::{Value, json};

/// Takes one step: removes a terminating pod, or makes a pending pod ready. Returns `false` if there is nothing to do.
pub(crate) fn step(sandbox: &Sandbox) -> bool {
    for pod in sandbox.list(&PODS, None) {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = ObjectKey::namespaced(text("namespace").as_str(), text("name"));
        if pod["metadata"]["deletionTimestamp"].is_string() {
            // The kubelet has done its part for a pod that only a finalizer keeps.
            if pod["metadata"]["deletionGracePeriodSeconds"] != json!(0) && sandbox.delete_now(&PODS, &key).is_ok() {
                return true;
            }
        } else if matches!(pod["status"]["phase"].as_str(), None | Some("Pending"))
            && sandbox.patch_status(&PODS, &key, &ready(&pod)).is_ok()
        {
            return true;
        }
    }
    false
}

fn ready(pod: &Value) -> Value {
    let since = &pod["metadata"]["creationTimestamp"];
    json!({ "status": {
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": since }],
    } })
}
