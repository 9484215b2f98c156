//! Probes: objects by which a scenario sees that its manager works.

use serde_json::{Value, json};

use super::manifests::replica_set;

/// A kind of object that one of the manager's controllers acts on at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    /// The path of its collection, in the namespace `probe` where the kind has namespaces.
    pub(super) path: &'static str,
    /// The object of a name.
    pub(super) object: fn(&str) -> Value,
    /// What is written into its status after its creation, where that makes the controller act.
    pub(super) status: fn() -> Option<Value>,
    /// The path of what the controller writes for a name, where that is not the object.
    pub(super) effect: Option<fn(&str) -> String>,
    /// Whether the controller has acted, by the object, or what is at the path of the effect, as it is now.
    pub(super) is_done: fn(Option<&Value>) -> bool,
}

/// A replica set, which gets its pod.
pub(super) const REPLICA_SET: Probe = Probe {
    path: "/apis/apps/v1/namespaces/probe/replicasets",
    object: |name| replica_set(name, 1),
    status: || None,
    effect: None,
    is_done: |set| set.is_some_and(|set| set["status"]["replicas"] == 1),
};

/// A config map whose owner never existed, which is collected.
pub(super) const GARBAGE: Probe = Probe {
    path: "/api/v1/namespaces/probe/configmaps",
    object: |name| {
        let uid = "11111111-2222-3333-4444-555555555555";
        let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": uid });
        json!({ "metadata": { "name": name, "ownerReferences": [owner] } })
    },
    status: || None,
    effect: None,
    is_done: |map| map.is_none(),
};

/// A suspended job, whose condition is written.
pub(super) const JOB: Probe = Probe {
    path: "/apis/batch/v1/namespaces/probe/jobs",
    object: |name| json!({ "metadata": { "name": name }, "spec": { "suspend": true, "template": never_again() } }),
    status: || None,
    effect: None,
    is_done: |job| job.is_some_and(|job| job["status"]["conditions"].is_array()),
};

/// A cron job with an active job that does not exist, which is taken from its status. Nothing else is written before a
/// start is due.
pub(super) const CRON_JOB: Probe = Probe {
    path: "/apis/batch/v1/namespaces/probe/cronjobs",
    object: |name| {
        let job = json!({ "spec": { "template": never_again() } });
        let spec = json!({ "schedule": "0 0 29 2 *", "timeZone": "Etc/UTC", "jobTemplate": job });
        json!({ "metadata": { "name": name }, "spec": spec })
    },
    status: || {
        let job =
            json!({ "apiVersion": "batch/v1", "kind": "Job", "namespace": "probe", "name": "gone", "uid": "gone" });
        Some(json!({ "active": [job] }))
    },
    effect: None,
    is_done: |cron_job| cron_job.is_some_and(|cron_job| cron_job["status"]["active"].is_null()),
};

/// A stateful set without pods, whose status is written.
pub(super) const STATEFUL_SET: Probe = Probe {
    path: "/apis/apps/v1/namespaces/probe/statefulsets",
    object: |name| replica_set(name, 0),
    status: || None,
    effect: None,
    is_done: is_observed,
};

/// A daemon set for no node, whose status is written.
pub(super) const DAEMON_SET: Probe = Probe {
    path: "/apis/apps/v1/namespaces/probe/daemonsets",
    object: |name| {
        let mut set = replica_set(name, 0);
        set["spec"]["template"]["spec"]["nodeSelector"] = json!({ "none": "such" });
        if let Some(spec) = set["spec"].as_object_mut() {
            spec.remove("replicas");
        }
        set
    },
    status: || None,
    effect: None,
    is_done: is_observed,
};

/// A service, which gets a slice without endpoints.
pub(super) const SERVICE: Probe = Probe {
    path: "/api/v1/namespaces/probe/services",
    object: |name| {
        let spec = json!({ "selector": { "app": name }, "ports": [{ "port": 80 }] });
        json!({ "metadata": { "name": name }, "spec": spec })
    },
    status: || None,
    effect: Some(|name| {
        let slices = "/apis/discovery.k8s.io/v1/namespaces/probe/endpointslices";
        format!("{slices}?labelSelector=kubernetes.io/service-name%3D{name}")
    }),
    is_done: |slices| slices.is_some_and(|slices| slices["items"][0].is_object()),
};

/// A slice that mirrors no endpoints, which is deleted.
pub(super) const MIRRORED_SLICE: Probe = Probe {
    path: "/apis/discovery.k8s.io/v1/namespaces/probe/endpointslices",
    object: |name| {
        let labels = json!({
            "kubernetes.io/service-name": name,
            "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
        });
        json!({ "metadata": { "name": name, "labels": labels }, "addressType": "IPv4", "endpoints": [] })
    },
    status: || None,
    effect: None,
    is_done: |slice| slice.is_none(),
};

/// A service CIDR, whose condition is written.
pub(super) const SERVICE_CIDR: Probe = Probe {
    path: "/apis/networking.k8s.io/v1/servicecidrs",
    object: |name| json!({ "metadata": { "name": name }, "spec": { "cidrs": ["192.168.0.0/24"] } }),
    status: || None,
    effect: None,
    is_done: |cidr| cidr.is_some_and(|cidr| cidr["status"]["conditions"].is_array()),
};

/// A budget without pods, whose status is written.
pub(super) const BUDGET: Probe = Probe {
    path: "/apis/policy/v1/namespaces/probe/poddisruptionbudgets",
    object: |name| {
        let spec = json!({ "maxUnavailable": 1, "selector": { "matchLabels": { "app": name } } });
        json!({ "metadata": { "name": name }, "spec": spec })
    },
    status: || None,
    effect: None,
    is_done: is_observed,
};

/// An autoscaler without a target, whose conditions are written after a period of 15 s.
pub(super) const AUTOSCALER: Probe = Probe {
    path: "/apis/autoscaling/v2/namespaces/probe/horizontalpodautoscalers",
    object: |name| {
        let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name });
        json!({ "metadata": { "name": name }, "spec": { "scaleTargetRef": target, "maxReplicas": 1 } })
    },
    status: || None,
    effect: None,
    is_done: |autoscaler| autoscaler.is_some_and(|autoscaler| autoscaler["status"]["conditions"].is_array()),
};

/// The template of pods that end.
fn never_again() -> Value {
    json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "example/main:1" }] } })
}

fn is_observed(object: Option<&Value>) -> bool {
    object.is_some_and(|object| object["status"]["observedGeneration"] == object["metadata"]["generation"])
}
