//! Builders of replica sets and pods. Defaults are minimal: a test sets what matters to it.

use std::sync::Arc;

use jiff::SignedDuration;
use kcm_api::View as _;
use kcm_api::views::{Pod, ReplicaSet};
use serde_json::{Value, json};

pub(crate) use crate::cluster::{NAMESPACE, key, now};
use crate::replicaset::observe::Observed;
use crate::replicaset::rank::Occupancy;
use crate::replicaset::settings::Settings;

/// The default feature gates.
pub(crate) const DEFAULTS: Settings = Settings { terminating_replicas: true, pod_deletion_cost: true };

/// That long before [`now`].
pub(crate) fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

/// The snapshot of a replica set with these pods, without occupancy.
pub(crate) fn observed(owner: &ReplicaSetBuilder, pods: &[PodBuilder]) -> Observed {
    Observed { owner: owner.build(), pods: build(pods), occupancy: Occupancy::default() }
}

pub(crate) fn build(pods: &[PodBuilder]) -> Vec<Arc<Pod>> {
    pods.iter().map(PodBuilder::build).collect()
}

pub(crate) fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
    pods.iter().map(|pod| pod.metadata.key.name()).collect()
}

/// A replica set of one pod, which selects `app=NAME` and has these labels in its template.
pub(crate) fn replica_set(name: &str) -> ReplicaSetBuilder {
    ReplicaSetBuilder(json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "uid": format!("uid-of-{name}"),
            "resourceVersion": "10",
            "generation": 1,
        },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "image" }] },
            },
        },
        "status": { "replicas": 0 },
    }))
}

#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct ReplicaSetBuilder(pub(crate) Value);

impl ReplicaSetBuilder {
    pub(crate) fn replicas(self, count: i32) -> Self {
        self.with("/spec", "replicas", json!(count))
    }

    pub(crate) fn min_ready_seconds(self, seconds: i32) -> Self {
        self.with("/spec", "minReadySeconds", json!(seconds))
    }

    pub(crate) fn selector(self, selector: Value) -> Self {
        self.with("/spec", "selector", selector)
    }

    pub(crate) fn template_labels(self, labels: Value) -> Self {
        self.with("/spec/template/metadata", "labels", labels)
    }

    pub(crate) fn generation(self, generation: i64) -> Self {
        self.with("/metadata", "generation", json!(generation))
    }

    pub(crate) fn terminating(self) -> Self {
        self.with("/metadata", "deletionTimestamp", json!(ago(1)))
    }

    pub(crate) fn namespace(self, namespace: &str) -> Self {
        self.with("/metadata", "namespace", json!(namespace))
    }

    pub(crate) fn status(self, status: Value) -> Self {
        self.with("", "status", status)
    }

    pub(crate) fn with(mut self, at: &str, name: &str, value: Value) -> Self {
        self.0.pointer_mut(at).expect("the fixture must have this object")[name] = value;
        self
    }

    pub(crate) fn build(&self) -> Arc<ReplicaSet> {
        Arc::new(ReplicaSet::decode(&self.0.to_string()).unwrap())
    }
}

/// A running pod of the replica set `web`, on a node of its own, that is not ready.
pub(crate) fn pod(name: &str) -> PodBuilder {
    PodBuilder(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "uid": format!("uid-of-{name}"),
            "resourceVersion": "20",
            "creationTimestamp": ago(3600),
            "labels": { "app": "web" },
        },
        "spec": { "nodeName": format!("node-of-{name}") },
        "status": { "phase": "Running" },
    }))
    .owned_by("web")
}

#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct PodBuilder(pub(crate) Value);

impl PodBuilder {
    /// Controlled by the replica set of that name.
    pub(crate) fn owned_by(self, name: &str) -> Self {
        let uid = format!("uid-of-{name}");
        self.owner("ReplicaSet", name, &uid)
    }

    pub(crate) fn owner(self, kind: &str, name: &str, uid: &str) -> Self {
        let owner = json!({
            "apiVersion": "apps/v1",
            "kind": kind,
            "name": name,
            "uid": uid,
            "controller": true,
            "blockOwnerDeletion": true,
        });
        self.with("/metadata", "ownerReferences", json!([owner]))
    }

    pub(crate) fn orphan(self) -> Self {
        self.with("/metadata", "ownerReferences", json!([]))
    }

    pub(crate) fn labels(self, labels: Value) -> Self {
        self.with("/metadata", "labels", labels)
    }

    pub(crate) fn namespace(self, namespace: &str) -> Self {
        self.with("/metadata", "namespace", json!(namespace))
    }

    pub(crate) fn uid(self, uid: &str) -> Self {
        self.with("/metadata", "uid", json!(uid))
    }

    pub(crate) fn version(self, version: &str) -> Self {
        self.with("/metadata", "resourceVersion", json!(version))
    }

    pub(crate) fn terminating(self) -> Self {
        self.with("/metadata", "deletionTimestamp", json!(ago(1)))
    }

    pub(crate) fn created(self, seconds_ago: i64) -> Self {
        self.with("/metadata", "creationTimestamp", json!(ago(seconds_ago)))
    }

    pub(crate) fn created_unknown(self) -> Self {
        self.with("/metadata", "creationTimestamp", Value::Null)
    }

    pub(crate) fn cost(self, cost: &str) -> Self {
        self.with("/metadata", "annotations", json!({ "controller.kubernetes.io/pod-deletion-cost": cost }))
    }

    pub(crate) fn node(self, name: &str) -> Self {
        self.with("/spec", "nodeName", json!(name))
    }

    pub(crate) fn unassigned(self) -> Self {
        self.with("/spec", "nodeName", Value::Null)
    }

    pub(crate) fn phase(self, phase: &str) -> Self {
        self.with("/status", "phase", json!(phase))
    }

    pub(crate) fn ready(self, seconds_ago: i64) -> Self {
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": ago(seconds_ago) });
        self.with("/status", "conditions", json!([ready]))
    }

    pub(crate) fn ready_unknown_since(self) -> Self {
        self.with("/status", "conditions", json!([{ "type": "Ready", "status": "True", "lastTransitionTime": null }]))
    }

    pub(crate) fn restarts(self, count: i32) -> Self {
        self.with("/status", "containerStatuses", json!([{ "name": "main", "restartCount": count }]))
    }

    pub(crate) fn sidecar_restarts(self, count: i32) -> Self {
        self.with("/spec", "initContainers", json!([{ "name": "side", "restartPolicy": "Always" }])).with(
            "/status",
            "initContainerStatuses",
            json!([{ "name": "side", "restartCount": count }]),
        )
    }

    pub(crate) fn with(mut self, at: &str, name: &str, value: Value) -> Self {
        self.0.pointer_mut(at).expect("the fixture must have this object")[name] = value;
        self
    }

    pub(crate) fn build(&self) -> Arc<Pod> {
        Arc::new(Pod::decode(&self.0.to_string()).unwrap())
    }
}
