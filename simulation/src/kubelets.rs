//! A scheduler and kubelets that act at once.

use kcm_sandbox_apiserver::{ObjectKey, PODS, Sandbox};
use serde_json::{Value, json};

/// The only node that a pod is pinned to.
const PINNED: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0\
                      /matchFields/0/values/0";

/// Takes one step: removes a terminating pod, binds a pod to the node that it is pinned to, makes a pending pod ready, or
/// ends a pod that is not restarted. Returns `false` if there is nothing to do.
pub(crate) fn step(sandbox: &Sandbox) -> bool {
    sandbox.list(&PODS, None).iter().any(|pod| acts_on(sandbox, pod))
}

fn acts_on(sandbox: &Sandbox, pod: &Value) -> bool {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
    let name = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    let key = ObjectKey::namespaced(name("namespace"), name("name"));
    if pod["metadata"]["deletionTimestamp"].is_string() {
        // The kubelet has done its part for a pod that only a finalizer keeps.
        return pod["metadata"]["deletionGracePeriodSeconds"] != json!(0) && sandbox.delete_now(&PODS, &key).is_ok();
    }
    if text("/spec/nodeName").is_none()
        && let Some(node) = text(PINNED)
    {
        return sandbox.bind_pod(&key, node).is_ok();
    }
    match text("/status/phase") {
        None | Some("Pending") => sandbox.patch_status(&PODS, &key, &ready(pod)).is_ok(),
        Some("Running") if text("/spec/restartPolicy") == Some("Never") => {
            sandbox.set_pod_phase(&key, "Succeeded").is_ok()
        }
        Some(_) => false,
    }
}

fn ready(pod: &Value) -> Value {
    let since = &pod["metadata"]["creationTimestamp"];
    json!({ "status": {
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": since }],
    } })
}
