//! Replica sets: pods that the controller creates, keeps, adopts and releases, and the status that it reports.

mod failures;
mod life;
mod ownership;
mod readiness;
mod restarts;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("replicaset") => {
        "replicaset/creates": life::creates,
        "replicaset/scales": life::scales,
        "replicaset/deletes_by_rank": life::deletes_by_rank,
        "replicaset/replaces_what_is_gone": life::replaces_what_is_gone,
        "replicaset/counts_terminating": life::counts_terminating,
        "replicaset/goes_in_foreground": life::goes_in_foreground,
        "replicaset/adopts": ownership::adopts,
        "replicaset/adopts_the_surplus": ownership::adopts_the_surplus,
        "replicaset/releases": ownership::releases,
        "replicaset/orphans": ownership::orphans,
        "replicaset/refused_template": failures::refused_template,
        "replicaset/quota": failures::quota,
        "replicaset/min_ready_seconds": readiness::min_ready_seconds,
        "replicaset/runs_on_nodes": readiness::runs_on_nodes,
    }
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

/// A pod that the replica set of this name would adopt.
fn orphan_of(set: &str, name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "app": set } },
        "spec": { "schedulerName": "no-scheduler", "containers": [{ "name": "main", "image": "example/main:1" }] },
    })
}

/// The objects of one scenario.
struct Objects {
    sets: Api<appsv1::ReplicaSet>,
    pods: Api<corev1::Pod>,
    events: Api<corev1::Event>,
}

impl Objects {
    fn of(case: &Case) -> Self {
        Self { sets: case.api(), pods: case.api(), events: case.api() }
    }

    async fn create_set(&self, set: Value) -> Result<appsv1::ReplicaSet> {
        let set: appsv1::ReplicaSet = serde_json::from_value(set).context("this is no replica set")?;
        self.sets.create(&PostParams::default(), &set).await.context("cannot create the replica set")
    }

    async fn create_pod(&self, pod: Value) -> Result<corev1::Pod> {
        let pod: corev1::Pod = serde_json::from_value(pod).context("this is no pod")?;
        self.pods.create(&PostParams::default(), &pod).await.context("cannot create the pod")
    }

    /// Creates a replica set and waits until it has its pods.
    async fn settle(&self, set: Value) -> Result<(appsv1::ReplicaSet, Vec<corev1::Pod>)> {
        let name = self.create_set(set).await?.name_any();
        self.settled(&name).await
    }

    async fn scale(&self, name: &str, replicas: usize) -> Result<()> {
        let patch = json!({ "spec": { "replicas": replicas } });
        self.sets
            .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .with_context(|| format!("cannot scale {name} to {replicas}"))?;
        Ok(())
    }

    async fn patch_pod(&self, name: &str, patch: Value) -> Result<corev1::Pod> {
        let patched = self.pods.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        patched.with_context(|| format!("cannot patch pod {name}"))
    }

    async fn patch_pod_status(&self, name: &str, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        self.pods
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .with_context(|| format!("cannot patch the status of pod {name}"))?;
        Ok(())
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

    /// The events about the set with this reason.
    async fn events(&self, set: &appsv1::ReplicaSet, reason: &str) -> Result<Vec<corev1::Event>> {
        let about = format!("involvedObject.uid={},reason={reason}", set.uid().unwrap_or_default());
        let events = self.events.list(&ListParams::default().fields(&about)).await.context("cannot list events")?;
        Ok(events.items)
    }

    /// Waits for the condition `ReplicaFailure`.
    async fn failure(&self, name: &str) -> Result<appsv1::ReplicaSetCondition> {
        eventually(&format!("replica set {name} to report a failure"), async || {
            let set = self.sets.get(name).await?;
            failure_of(&set).context("there is no condition ReplicaFailure")
        })
        .await
    }
}

fn failure_of(set: &appsv1::ReplicaSet) -> Option<appsv1::ReplicaSetCondition> {
    let conditions = set.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_.as_deref() == Some("ReplicaFailure")).cloned()
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

/// Names, sorted.
fn names(pods: &[corev1::Pod]) -> Vec<String> {
    let mut names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
    names.sort_unstable();
    names
}
