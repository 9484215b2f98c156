//! What the API server fills in. Pure; only what a controller or a test notices.
//!
//! # Upstream
//! `pkg/apis/{core,apps}/v1/defaults.go`, and `PrepareForCreate` of the strategies

use serde_json::{Value, json};

use crate::kinds::Behaviour;
use crate::object;

/// Fills in the fields that a client left out.
pub(crate) fn apply(behaviour: Behaviour, object: &mut Value) {
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
        Behaviour::Pod => Some(json!({ "phase": "Pending", "qosClass": "BestEffort" })),
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
