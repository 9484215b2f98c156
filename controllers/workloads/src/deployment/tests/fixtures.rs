//! Builders of deployments and replica sets. Defaults are minimal: a test sets what matters to it.

use std::sync::Arc;

use jiff::SignedDuration;
use kcm_api::View as _;
use kcm_api::views::{Deployment, Pod, ReplicaSet};
use serde_json::{Value, json};

pub(crate) use crate::cluster::{NAMESPACE, key, now};
use crate::deployment::settings::Settings;

/// The default feature gates.
pub(crate) const DEFAULTS: Settings = Settings { terminating_replicas: true };

/// That long before [`now`].
pub(crate) fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

/// The template of an image.
pub(crate) fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": image }] },
    })
}

/// A rolling deployment with one replica of `image:1`, which selects `app=web`, as the API serves one.
pub(crate) fn deployment(name: &str) -> DeploymentBuilder {
    DeploymentBuilder(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "uid": format!("uid-of-{name}"),
            "resourceVersion": "10",
            "generation": 1,
            "creationTimestamp": ago(3600),
        },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": "web" } },
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" } },
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
            "template": template("image:1"),
        },
        "status": {},
    }))
}

#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct DeploymentBuilder(pub(crate) Value);

impl DeploymentBuilder {
    pub(crate) fn replicas(self, count: i32) -> Self {
        self.with("/spec", "replicas", json!(count))
    }

    pub(crate) fn image(self, image: &str) -> Self {
        self.with("/spec/template/spec/containers/0", "image", json!(image))
    }

    pub(crate) fn rolling(self, surge: i32, unavailable: i32) -> Self {
        let limits = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
        self.with("/spec/strategy", "rollingUpdate", limits)
    }

    pub(crate) fn recreate(self) -> Self {
        self.with("/spec", "strategy", json!({ "type": "Recreate" }))
    }

    pub(crate) fn paused(self) -> Self {
        self.with("/spec", "paused", json!(true))
    }

    pub(crate) fn no_deadline(self) -> Self {
        self.with("/spec", "progressDeadlineSeconds", json!(i32::MAX))
    }

    pub(crate) fn selector(self, selector: Value) -> Self {
        self.with("/spec", "selector", selector)
    }

    pub(crate) fn annotations(self, annotations: Value) -> Self {
        self.with("/metadata", "annotations", annotations)
    }

    pub(crate) fn generation(self, generation: i64) -> Self {
        self.with("/metadata", "generation", json!(generation))
    }

    pub(crate) fn uid(self, uid: &str) -> Self {
        self.with("/metadata", "uid", json!(uid))
    }

    pub(crate) fn terminating(self) -> Self {
        self.with("/metadata", "deletionTimestamp", json!(ago(1)))
    }

    pub(crate) fn status(self, status: Value) -> Self {
        self.with("", "status", status)
    }

    /// The state after a complete rollout.
    pub(crate) fn rolled_out(self, revision: &str) -> Self {
        let count = self.0["spec"]["replicas"].clone();
        let progress = progressing("True", "NewReplicaSetAvailable", 1000);
        self.annotations(json!({ "deployment.kubernetes.io/revision": revision })).status(json!({
            "observedGeneration": 1,
            "replicas": count,
            "updatedReplicas": count,
            "readyReplicas": count,
            "availableReplicas": count,
            "terminatingReplicas": 0,
            "conditions": [available(1000), progress],
        }))
    }

    pub(crate) fn with(mut self, at: &str, name: &str, value: Value) -> Self {
        self.0.pointer_mut(at).expect("the fixture must have this object")[name] = value;
        self
    }

    pub(crate) fn build(&self) -> Arc<Deployment> {
        Arc::new(Deployment::decode(&self.0.to_string()).unwrap())
    }
}

/// The condition `Progressing`, updated and changed so many seconds ago.
pub(crate) fn progressing(status: &str, reason: &str, seconds_ago: i64) -> Value {
    condition("Progressing", status, reason, seconds_ago)
}

/// The condition `Available` with enough replicas.
pub(crate) fn available(seconds_ago: i64) -> Value {
    let mut condition = condition("Available", "True", "MinimumReplicasAvailable", seconds_ago);
    condition["message"] = json!("Deployment has minimum availability.");
    condition
}

pub(crate) fn condition(type_: &str, status: &str, reason: &str, seconds_ago: i64) -> Value {
    json!({
        "type": type_,
        "status": status,
        "lastUpdateTime": ago(seconds_ago),
        "lastTransitionTime": ago(seconds_ago),
        "reason": reason,
        "message": "reported",
    })
}

/// A replica set of the deployment `web` without replicas, of `image:1`, created an hour ago, whose hash is its name.
pub(crate) fn set(name: &str) -> SetBuilder {
    SetBuilder(json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "uid": format!("uid-of-{name}"),
            "resourceVersion": "20",
            "generation": 1,
            "creationTimestamp": ago(3600),
            "labels": { "app": "web", "pod-template-hash": name },
            "annotations": {},
        },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": { "app": "web", "pod-template-hash": name } },
            "template": template("image:1"),
        },
        "status": { "replicas": 0, "observedGeneration": 1, "terminatingReplicas": 0 },
    }))
    .owner("Deployment", "web", "uid-of-web")
    .with("/spec/template/metadata", "labels", json!({ "app": "web", "pod-template-hash": name }))
}

#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct SetBuilder(pub(crate) Value);

impl SetBuilder {
    /// `spec.replicas`, and how many are ready and available.
    pub(crate) fn replicas(self, count: i32, available: i32) -> Self {
        self.with("/spec", "replicas", json!(count))
            .with("/status", "replicas", json!(count))
            .with("/status", "readyReplicas", json!(available))
            .with("/status", "availableReplicas", json!(available))
    }

    pub(crate) fn image(self, image: &str) -> Self {
        self.with("/spec/template/spec/containers/0", "image", json!(image))
    }

    pub(crate) fn created(self, seconds_ago: i64) -> Self {
        self.with("/metadata", "creationTimestamp", json!(ago(seconds_ago)))
    }

    pub(crate) fn revision(self, revision: &str) -> Self {
        self.annotation("deployment.kubernetes.io/revision", revision)
    }

    /// The sizes that the deployment had when it was last scaled.
    pub(crate) fn sizes(self, desired: i32, max: i32) -> Self {
        self.annotation("deployment.kubernetes.io/desired-replicas", &desired.to_string())
            .annotation("deployment.kubernetes.io/max-replicas", &max.to_string())
    }

    pub(crate) fn annotation(self, key: &str, value: &str) -> Self {
        self.with("/metadata/annotations", key, json!(value))
    }

    pub(crate) fn labels(self, labels: Value) -> Self {
        self.with("/metadata", "labels", labels)
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

    pub(crate) fn owned_by(self, name: &str) -> Self {
        let uid = format!("uid-of-{name}");
        self.owner("Deployment", name, &uid)
    }

    pub(crate) fn orphan(self) -> Self {
        self.with("/metadata", "ownerReferences", json!([]))
    }

    pub(crate) fn version(self, version: &str) -> Self {
        self.with("/metadata", "resourceVersion", json!(version))
    }

    pub(crate) fn terminating(self) -> Self {
        self.with("/metadata", "deletionTimestamp", json!(ago(1)))
    }

    pub(crate) fn with(mut self, at: &str, name: &str, value: Value) -> Self {
        self.0.pointer_mut(at).expect("the fixture must have this object")[name] = value;
        self
    }

    pub(crate) fn build(&self) -> Arc<ReplicaSet> {
        Arc::new(ReplicaSet::decode(&self.0.to_string()).unwrap())
    }
}

pub(crate) fn build(sets: &[SetBuilder]) -> Vec<Arc<ReplicaSet>> {
    sets.iter().map(SetBuilder::build).collect()
}

/// A running pod of a replica set.
pub(crate) fn pod_of(set: &str) -> Arc<Pod> {
    pod_in(set, "Running")
}

/// A pod of a replica set in this phase.
pub(crate) fn pod_in(set: &str, phase: &str) -> Arc<Pod> {
    let pod = json!({
        "metadata": {
            "namespace": NAMESPACE,
            "name": format!("{set}-x"),
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": set,
                "uid": format!("uid-of-{set}"),
                "controller": true,
            }],
        },
        "status": { "phase": phase },
    });
    Arc::new(Pod::decode(&pod.to_string()).unwrap())
}
