//! Replica sets whose manager is killed. A script compares the rest.

mod restarts;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("replicaset").ours().with_own_managers() => {
        "replicaset/survives_kills": restarts::survives_kills,
    }
}

/// A replica set whose pods are not scheduled: they stay pending until a scenario binds them or sets their status.
fn replica_set(name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name, "tier": "test" } },
                "spec": { "schedulerName": "no-scheduler", "containers": [{ "name": "main", "image": "example/main:1" }] },
            },
        },
    })
}

/// The objects of one scenario.
struct Objects {
    sets: Api<appsv1::ReplicaSet>,
    pods: Api<corev1::Pod>,
}

impl Objects {
    fn of(case: &Case) -> Self {
        Self { sets: case.api(), pods: case.api() }
    }

    async fn create_set(&self, set: Value) -> Result<appsv1::ReplicaSet> {
        let set: appsv1::ReplicaSet = serde_json::from_value(set).context("this is no replica set")?;
        self.sets.create(&PostParams::default(), &set).await.context("cannot create the replica set")
    }

    /// The pods that the set controls, terminating ones included.
    async fn owned(&self, set: &appsv1::ReplicaSet) -> Result<Vec<corev1::Pod>> {
        let pods = self.pods.list(&ListParams::default()).await.context("cannot list pods")?;
        Ok(pods.items.into_iter().filter(|pod| is_controlled_by(pod, set)).collect())
    }

    /// The pods of the set that are active.
    async fn active(&self, set: &appsv1::ReplicaSet) -> Result<Vec<corev1::Pod>> {
        let mut pods = self.owned(set).await?;
        pods.retain(is_active);
        Ok(pods)
    }

    /// Waits until the set has as many pods as its spec asks for, and its status reports them.
    async fn settled(&self, name: &str) -> Result<(appsv1::ReplicaSet, Vec<corev1::Pod>)> {
        eventually(&format!("replica set {name} to have what it asks for"), async || {
            let set = self.sets.get(name).await?;
            let asked = set.spec.replicas.unwrap_or(1);
            let status = set.status.clone().unwrap_or_default();
            let pods = self.active(&set).await?;
            ensure!(
                pods.len() == usize::try_from(asked)? && status.replicas == asked,
                "it asks for {asked}, has {} pods and reports {}",
                pods.len(),
                status.replicas
            );
            ensure!(status.observed_generation == set.metadata.generation, "it has not observed its last change");
            Ok((set, pods))
        })
        .await
    }
}

fn controller_of(pod: &corev1::Pod) -> Option<&metav1::OwnerReference> {
    pod.owner_references().iter().find(|owner| owner.controller == Some(true))
}

fn is_controlled_by(pod: &corev1::Pod, set: &appsv1::ReplicaSet) -> bool {
    controller_of(pod).is_some_and(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
}

fn is_active(pod: &corev1::Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Failed" | "Succeeded"))
}
