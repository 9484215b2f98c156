//! Whole budgets on an API server in the process.

mod drain;
mod faults;
mod invalid_selectors;
mod life;
mod owners;

use std::ops::Deref;

use kcm_framework::ControllerDescriptor;
use kcm_framework::api::views::PodDisruptionBudget;
use kcm_framework::api::{KnownView as _, Resource};
use kcm_testing::TestCluster;
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{PODS, Sandbox, Status};
use serde_json::{Value, json};

use super::budget_json;
use crate::disruption::DESCRIPTOR;
use crate::tests::cluster::{self, key};
use crate::tests::fixtures::{PodBuilder, ReplicaSetBuilder, create_pod, create_replica_set, pod, replica_set};

const BUDGETS: Resource = PodDisruptionBudget::RESOURCE;

/// An API server and a manager with the controller on it, which stops on drop.
struct Cluster(cluster::Cluster);

impl Deref for Cluster {
    type Target = cluster::Cluster;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Cluster {
    async fn start(prepare: impl FnOnce(&Sandbox) + 'static) -> Self {
        Self::start_with(&[DESCRIPTOR], prepare).await
    }

    async fn start_with(controllers: &[ControllerDescriptor], prepare: impl FnOnce(&Sandbox) + 'static) -> Self {
        Self(cluster::Cluster::start(controllers, &[PODS, BUDGETS], prepare).await)
    }

    fn status(&self) -> Value {
        status(self.sandbox())
    }

    /// The messages of the events with that reason.
    fn messages(&self, reason: &str) -> Vec<String> {
        self.events().into_iter().filter(|event| event.1 == reason).map(|event| event.2).collect()
    }
}

fn create_budget(sandbox: &Sandbox, spec: Value) -> Value {
    sandbox.create(&BUDGETS, budget_json("web", spec)).expect("the budget must be valid")
}

/// The status of the budget `web`.
fn status(sandbox: &Sandbox) -> Value {
    sandbox.get(&BUDGETS, &key("web")).expect("the budget must be there")["status"].clone()
}

/// Disruptions allowed, healthy, wanted healthy and expected pods.
fn numbers(status: &Value) -> [i64; 4] {
    ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"]
        .map(|name| status[name].as_i64().unwrap_or_default())
}

async fn has(cluster: &TestCluster, expected: [i64; 4]) {
    cluster.eventually(&format!("the status is {expected:?}"), |sandbox| numbers(&status(sandbox)) == expected).await;
}

/// The condition `DisruptionAllowed`.
fn allowed(status: &Value) -> Value {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == "DisruptionAllowed").unwrap_or_default()
}

/// Creates the pods `web-0`… that are ready, controlled by nothing.
fn create_ready(sandbox: &Sandbox, count: usize) {
    for number in 0..count {
        create_ready_pod(sandbox, &pod(&format!("web-{number}")).orphan().unassigned());
    }
}

fn create_ready_pod(sandbox: &Sandbox, pod: &PodBuilder) {
    let created = create_pod(sandbox, pod);
    let name = created["metadata"]["name"].as_str().expect("pods have names");
    sandbox.set_pod_ready(&key(name), true, cluster::now()).expect("the pod must be there");
}

/// A replica set with its uid, as the owner of pods.
fn owned_by(sandbox: &Sandbox, replica_set: &ReplicaSetBuilder) -> impl Fn(&str) -> PodBuilder + use<> {
    let created = create_replica_set(sandbox, replica_set);
    let text = |field: &str| created["metadata"][field].as_str().expect("it has been created").to_owned();
    let (name, uid) = (text("name"), text("uid"));
    move |pod_name| pod(pod_name).unassigned().owner("ReplicaSet", &name, &uid)
}

/// A replica set with so many replicas.
fn set_of(name: &str, replicas: i32) -> ReplicaSetBuilder {
    replica_set(name).with("/spec", "replicas", json!(replicas))
}

/// Evicts a pod, as its budget allows.
fn evict(sandbox: &Sandbox, name: &str) -> Result<(), Status> {
    let pod = sandbox.get(&PODS, &key(name)).expect("the pod must be there");
    let uid = pod["metadata"]["uid"].as_str().expect("pods have uids");
    DirectClient::new(sandbox).evict(&key(name), uid)
}
