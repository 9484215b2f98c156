//! Whole reconciles on an API server in the process. What is decided has its tables in `shared/replicas`.

mod faults;
mod invariants;
mod life;
mod simulation;

use std::ops::Deref;

use kcm_framework::api::{KnownView as _, Resource, views};
use kcm_testing::TestCluster;
use kcm_testing::sandbox::{PODS, Sandbox};
use serde_json::{Value, json};

use super::DESCRIPTOR;
use crate::tests::cluster::{NAMESPACE, environment, key};

const CONTROLLERS: Resource = views::ReplicationController::RESOURCE;

/// A replication controller that selects `app=web`.
fn web(replicas: i32) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": { "namespace": NAMESPACE, "name": "web" },
        "spec": {
            "replicas": replicas,
            "selector": { "app": "web" },
            "template": {
                "metadata": { "labels": { "app": "web", "tier": "front" } },
                "spec": { "containers": [{ "name": "main", "image": "image" }] },
            },
        },
    })
}

/// An API server and a manager with the controller on it, which stops on drop.
struct Cluster(crate::tests::cluster::Cluster);

impl Deref for Cluster {
    type Target = crate::tests::cluster::Cluster;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Cluster {
    async fn start(prepare: impl FnOnce(&Sandbox) + 'static) -> Self {
        Self(crate::tests::cluster::Cluster::start(&[DESCRIPTOR], &[PODS, CONTROLLERS], prepare).await)
    }

    /// As [`start`](Self::start), with a loop that waits so long for its own writes that it counts as stalled.
    async fn start_stalling(prepare: impl FnOnce(&Sandbox) + 'static) -> Self {
        let environment = environment(&[DESCRIPTOR]).prepare(prepare).allow_error("Loop is stalled");
        let watched = [PODS, CONTROLLERS];
        Self(crate::tests::cluster::Cluster::start_in(environment, &[DESCRIPTOR], &watched).await)
    }

    fn create(&self, controller: Value) -> Value {
        self.sandbox().create(&CONTROLLERS, controller).expect("the replication controller must be valid")
    }

    fn controller(&self) -> Value {
        self.object(&CONTROLLERS, "web")
    }
}

fn scale(cluster: &TestCluster, replicas: i32) {
    let patch = json!({ "spec": { "replicas": replicas } });
    cluster.sandbox().patch(&CONTROLLERS, &key("web"), &patch).expect("the replication controller must be there");
}

/// Waits until there are that many pods, and the status reports them.
async fn has(cluster: &TestCluster, replicas: usize) {
    let what = format!("there are {replicas} pods, and they are reported");
    let settled = |sandbox: &Sandbox| {
        let controller = sandbox.get(&CONTROLLERS, &key("web")).expect("it must be there");
        sandbox.list(&PODS, Some(NAMESPACE)).len() == replicas
            && controller["status"]["replicas"] == json!(replicas)
            && controller["status"]["observedGeneration"] == controller["metadata"]["generation"]
    };
    cluster.eventually(&what, settled).await;
}
