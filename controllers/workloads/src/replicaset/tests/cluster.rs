//! A manager with the replica set controller, for tests.

use std::ops::Deref;

use kcm_api::ObjectKey;
use kcm_sandbox_apiserver::{PODS, REPLICA_SETS, Sandbox};
use serde_json::Value;

use super::fixtures::{PodBuilder, ReplicaSetBuilder};
use crate::cluster::as_sent;
use crate::replicaset::DESCRIPTOR;

/// An API server and a manager on it, which stops on drop.
pub(crate) struct Cluster(crate::cluster::Cluster);

impl Deref for Cluster {
    type Target = crate::cluster::Cluster;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Cluster {
    /// Starts the controller on an API server that `prepare` has filled.
    pub(crate) async fn start(prepare: impl FnOnce(&Sandbox) + 'static) -> Self {
        Self(crate::cluster::Cluster::start(&[DESCRIPTOR], &[PODS, REPLICA_SETS], prepare).await)
    }

    pub(crate) fn create(&self, replica_set: &ReplicaSetBuilder) -> Value {
        create_replica_set(self.sandbox(), replica_set)
    }

    pub(crate) fn replica_set(&self, name: &str) -> Value {
        self.object(&REPLICA_SETS, name)
    }

    pub(crate) fn status(&self, name: &str) -> Value {
        self.replica_set(name)["status"].clone()
    }
}

pub(crate) fn create_replica_set(sandbox: &Sandbox, replica_set: &ReplicaSetBuilder) -> Value {
    sandbox.create(&REPLICA_SETS, as_sent(replica_set.0.clone())).expect("the replica set must be valid")
}

/// Creates a pod with a spec that the API server admits, and puts it into its phase.
pub(crate) fn create_pod(sandbox: &Sandbox, pod: &PodBuilder) -> Value {
    let pod = pod.clone().with("/spec", "containers", serde_json::json!([{ "name": "main", "image": "image" }])).0;
    let phase = pod["status"]["phase"].as_str().expect("fixtures have a phase").to_owned();
    let created = sandbox.create(&PODS, as_sent(pod)).expect("the pod must be valid");
    let meta = &created["metadata"];
    let key = |field: &str| meta[field].as_str().expect("pods have names and namespaces").to_owned();
    let key = ObjectKey::namespaced(key("namespace"), key("name"));
    sandbox.set_pod_phase(&key, &phase).expect("the pod must be there")
}
