//! A scheduler and kubelets that act at once.

use kcm_sandbox_apiserver::{ObjectKey, PODS, Sandbox};
use serde_json::{Value, json};

use crate::schedule::Failure;

/// The only node that a pod is pinned to.
const PINNED: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0\
                      /matchFields/0/values/0";

/// Reason of the condition of a pod that is unready for one step.
const UNREADY: &str = "Unready";

/// The next step of the kubelet of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pod: ObjectKey,
    kind: Kind,
    created: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// Removes a terminating pod.
    Remove,
    /// Binds a pod to the node that it is pinned to.
    Bind(String),
    /// Makes a pending pod ready.
    Start,
    /// Ends a pod that is not restarted.
    Finish,
}

/// Returns the next step, or `None` if there is nothing to do.
pub(crate) fn next(sandbox: &Sandbox) -> Option<Step> {
    sandbox.list(&PODS, None).iter().find_map(step_of)
}

fn step_of(pod: &Value) -> Option<Step> {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
    let name = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    let kind = if pod["metadata"]["deletionTimestamp"].is_string() {
        // The kubelet has done its part for a pod that only a finalizer keeps.
        (pod["metadata"]["deletionGracePeriodSeconds"] != json!(0)).then_some(Kind::Remove)
    } else if text("/spec/nodeName").is_none()
        && let Some(node) = text(PINNED)
    {
        Some(Kind::Bind(node.to_owned()))
    } else {
        match text("/status/phase") {
            None | Some("Pending") => Some(Kind::Start),
            Some("Running") if text("/status/conditions/0/reason") == Some(UNREADY) => Some(Kind::Start),
            Some("Running") if text("/spec/restartPolicy") == Some("Never") => Some(Kind::Finish),
            Some(_) => None,
        }
    };
    let pod_key = ObjectKey::namespaced(name("namespace"), name("name"));
    kind.map(|kind| Step { pod: pod_key, kind, created: pod["metadata"]["creationTimestamp"].clone() })
}

impl Step {
    /// Takes the step. Returns `false` if the API server refuses it.
    pub(crate) fn take(&self, sandbox: &Sandbox) -> bool {
        match &self.kind {
            Kind::Remove => sandbox.delete_now(&PODS, &self.pod).is_ok(),
            Kind::Bind(node) => sandbox.bind_pod(&self.pod, node).is_ok(),
            Kind::Start => sandbox.patch_status(&PODS, &self.pod, &self.running("True", None)).is_ok(),
            Kind::Finish => sandbox.set_pod_phase(&self.pod, "Succeeded").is_ok(),
        }
    }

    /// Returns `true` if the pod can fail instead of the step.
    pub(crate) const fn can_fail(&self) -> bool {
        match &self.kind {
            Kind::Start | Kind::Finish => true,
            Kind::Remove | Kind::Bind(_) => false,
        }
    }

    /// Lets the pod fail instead of the step. Returns `false` if the API server refuses it.
    pub(crate) fn fail(&self, sandbox: &Sandbox, failure: Failure) -> bool {
        let status = match failure {
            Failure::Fails => json!({ "status": { "phase": "Failed" } }),
            Failure::IsEvicted => json!({ "status": { "phase": "Failed", "reason": "Evicted" } }),
            Failure::IsUnready => self.running("False", Some(UNREADY)),
        };
        sandbox.patch_status(&PODS, &self.pod, &status).is_ok()
    }

    fn running(&self, ready: &str, reason: Option<&str>) -> Value {
        let mut condition = json!({ "type": "Ready", "status": ready, "lastTransitionTime": self.created });
        if let Some(reason) = reason {
            condition["reason"] = reason.into();
        }
        json!({ "status": { "phase": "Running", "conditions": [condition] } })
    }
}
