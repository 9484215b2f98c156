//! What the API server fills in. Pure; only what a controller or a test notices.
//!
//! # Upstream
//! `pkg/apis/{core,apps}/v1/defaults.go`, and `PrepareForCreate` of the strategies

use serde_json::{Value, json};

use crate::kinds::Behaviour;
use crate::object;

/// Fills in the fields that a client left out.
pub(crate) fn apply(behaviour: Behaviour, object: &mut Value) {
    write_null_times(behaviour, object);
    match behaviour {
        Behaviour::Pod => pod_spec(object, &["spec"]),
        Behaviour::ReplicaSet => {
            object::set_default(object, &["spec", "replicas"], 1);
            pod_spec(object, &["spec", "template", "spec"]);
        }
        Behaviour::Deployment => {
            object::set_default(object, &["spec", "replicas"], 1);
            object::set_default(object, &["spec", "revisionHistoryLimit"], 10);
            object::set_default(object, &["spec", "progressDeadlineSeconds"], 600);
            object::set_default(object, &["spec", "strategy", "type"], "RollingUpdate");
            if object::text(object, &["spec", "strategy", "type"]) == Some("RollingUpdate") {
                object::set_default(object, &["spec", "strategy", "rollingUpdate", "maxSurge"], "25%");
                object::set_default(object, &["spec", "strategy", "rollingUpdate", "maxUnavailable"], "25%");
            }
            pod_spec(object, &["spec", "template", "spec"]);
        }
        Behaviour::Namespace | Behaviour::Plain | Behaviour::Custom => {}
    }
}

/// The state that a new object starts in: clients cannot set it.
pub(crate) fn initial_state(behaviour: Behaviour, has_status: bool, object: &mut Value) {
    let status = match behaviour {
        Behaviour::Pod => {
            admit_pod(object);
            Some(json!({ "phase": "Pending", "qosClass": "BestEffort" }))
        }
        Behaviour::ReplicaSet => Some(json!({ "replicas": 0 })),
        Behaviour::Deployment => Some(json!({})),
        Behaviour::Namespace => {
            let name = object::name(object).to_owned();
            object::set(object, &["metadata", "labels", "kubernetes.io/metadata.name"], Some(name.into()));
            object::set(object, &["spec", "finalizers"], Some(json!(["kubernetes"])));
            Some(json!({ "phase": "Active" }))
        }
        Behaviour::Plain => has_status.then(|| json!({})),
        Behaviour::Custom => None,
    };
    if has_status {
        object::set(object, &["status"], status);
    }
}

/// What admission fills into new pods, beside the defaults that templates have too.
fn admit_pod(pod: &mut Value) {
    object::set_default(pod, &["spec", "enableServiceLinks"], true);
    object::set_default(pod, &["spec", "priority"], 0);
    object::set_default(pod, &["spec", "preemptionPolicy"], "PreemptLowerPriority");
    let mut tolerations = object::list(pod, &["spec", "tolerations"]).to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if !tolerations.iter().any(|toleration| object::text(toleration, &["key"]).is_none_or(|it| it == key)) {
            let toleration =
                json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
            tolerations.push(toleration);
        }
    }
    object::set(pod, &["spec", "tolerations"], Some(tolerations.into()));
}

/// Typed times that are not set are served as null, where they are not pointers.
fn write_null_times(behaviour: Behaviour, object: &mut Value) {
    let times: &[&str] = match behaviour {
        Behaviour::Pod => &["lastProbeTime", "lastTransitionTime"],
        Behaviour::Deployment => &["lastUpdateTime", "lastTransitionTime"],
        Behaviour::ReplicaSet | Behaviour::Namespace => &["lastTransitionTime"],
        Behaviour::Plain | Behaviour::Custom => &[],
    };
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        for time in times {
            object::set_default(condition, &[time], Value::Null);
        }
    }
}

fn pod_spec(object: &mut Value, path: &[&str]) {
    let Some(spec) = path.iter().try_fold(object, |value, field| value.get_mut(*field)) else { return };
    if !spec.is_object() {
        return;
    }
    object::set_default(spec, &["restartPolicy"], "Always");
    object::set_default(spec, &["terminationGracePeriodSeconds"], 30);
    object::set_default(spec, &["dnsPolicy"], "ClusterFirst");
    object::set_default(spec, &["schedulerName"], "default-scheduler");
    object::set_default(spec, &["securityContext"], json!({}));
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let image = object::text(container, &["image"]).unwrap_or_default();
            let floating = !image.contains('@')
                && image.rsplit('/').next().is_some_and(|name| !name.contains(':') || name.ends_with(":latest"));
            object::set_default(container, &["imagePullPolicy"], if floating { "Always" } else { "IfNotPresent" });
            object::set_default(container, &["resources"], json!({}));
            object::set_default(container, &["terminationMessagePath"], "/dev/termination-log");
            object::set_default(container, &["terminationMessagePolicy"], "File");
        }
    }
}
