//! A manager with the deployment controller, and optionally the replica set controller, for tests.

use std::ops::Deref;

use kcm_sandbox_apiserver::{DEPLOYMENTS, PODS, REPLICA_SETS, Sandbox};
use serde_json::Value;

use super::fixtures::{DeploymentBuilder, NAMESPACE, ReplicaSetBuilder, key};
use crate::deployment::DESCRIPTOR;
use crate::tests::cluster::{as_sent, environment};

/// An API server and a manager on it, which stops on drop.
pub(crate) struct Cluster(crate::tests::cluster::Cluster);

impl Deref for Cluster {
    type Target = crate::tests::cluster::Cluster;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Cluster {
    /// Starts the deployment controller alone: the status of replica sets does not change.
    pub(crate) async fn start(prepare: impl FnOnce(&Sandbox) + 'static) -> Self {
        let watched = [PODS, REPLICA_SETS, DEPLOYMENTS];
        Self(crate::tests::cluster::Cluster::start(&[DESCRIPTOR], &watched, prepare).await)
    }

    /// Starts the deployment controller alone, in a test with objects that cannot be decoded.
    pub(crate) async fn start_with_undecodable() -> Self {
        let environment = environment(&[DESCRIPTOR]).allow_error("Object cannot be decoded");
        let watched = [PODS, REPLICA_SETS, DEPLOYMENTS];
        Self(crate::tests::cluster::Cluster::start_in(environment, &[DESCRIPTOR], &watched).await)
    }

    /// Starts the deployment controller and the replica set controller.
    pub(crate) async fn start_both(prepare: impl FnOnce(&Sandbox) + 'static) -> Self {
        let watched = [PODS, REPLICA_SETS, DEPLOYMENTS];
        let controllers = [DESCRIPTOR, crate::replicaset::DESCRIPTOR];
        Self(crate::tests::cluster::Cluster::start(&controllers, &watched, prepare).await)
    }

    pub(crate) fn create(&self, deployment: &DeploymentBuilder) -> Value {
        create_deployment(self.sandbox(), deployment)
    }

    pub(crate) fn deployment(&self) -> Value {
        self.object(&DEPLOYMENTS, "web")
    }

    pub(crate) fn patch(&self, merge_patch: &Value) -> Value {
        self.sandbox().patch(&DEPLOYMENTS, &key("web"), merge_patch).expect("the deployment must be there")
    }

    pub(crate) fn status(&self) -> Value {
        self.deployment()["status"].clone()
    }

    /// Replica sets, the oldest first.
    pub(crate) fn sets(&self) -> Vec<Value> {
        let mut sets = self.sandbox().list(&REPLICA_SETS, Some(NAMESPACE));
        sets.sort_by_key(|set| set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].to_string());
        sets
    }

    /// The sizes of the replica sets by image.
    pub(crate) fn sizes(&self) -> Vec<(String, i64)> {
        let row = |set: &Value| {
            let image = set.pointer("/spec/template/spec/containers/0/image").and_then(Value::as_str);
            (image.unwrap_or_default().to_owned(), set["spec"]["replicas"].as_i64().unwrap_or(-1))
        };
        let mut rows: Vec<_> = self.sets().iter().map(row).collect();
        rows.sort();
        rows
    }

    /// Acts as scheduler and kubelets: deletes terminating pods, and makes pods ready unless their image is `broken`.
    pub(crate) fn run_pods(&self) {
        for pod in self.pods() {
            let key = key(pod["metadata"]["name"].as_str().expect("pods have names"));
            let image = pod.pointer("/spec/containers/0/image").and_then(Value::as_str).unwrap_or_default();
            let is_ready = pod.pointer("/status/phase").is_some_and(|phase| phase == "Running");
            if pod["metadata"].get("deletionTimestamp").is_some() {
                self.sandbox().delete_now(&PODS, &key).expect("the pod must be there");
            } else if pod["spec"].get("nodeName").is_none() {
                self.sandbox().bind_pod(&key, "node").expect("the pod must be there");
            } else if !is_ready && !image.starts_with("broken") {
                self.sandbox().set_pod_ready(&key, true, self.sandbox().now()).expect("the pod must be there");
            }
        }
    }

    /// The number of pods that are ready and not terminating.
    pub(crate) fn serving(&self) -> usize {
        let serves = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array();
            let is_ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
            pod["metadata"].get("deletionTimestamp").is_none()
                && conditions.is_some_and(|conditions| conditions.iter().any(is_ready))
        };
        self.pods().iter().filter(serves).count()
    }

    /// Runs pods until `holds`.
    pub(crate) async fn run_until(&self, what: &str, holds: impl Fn() -> bool) {
        self.eventually(what, |_| {
            self.run_pods();
            holds()
        })
        .await;
    }

    /// Runs pods until the rollout is complete.
    pub(crate) async fn run_until_complete(&self) {
        self.run_until("the rollout is complete", || {
            let deployment = self.deployment();
            let (status, wanted) = (&deployment["status"], &deployment["spec"]["replicas"]);
            status["observedGeneration"] == deployment["metadata"]["generation"]
                && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|count| status[count] == *wanted)
        })
        .await;
        self.settle().await;
        self.run_pods();
        self.settle().await;
    }

    /// The condition of that type.
    pub(crate) fn condition(&self, type_: &str) -> Value {
        let status = self.status();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == type_).unwrap_or_default()
    }

    /// The reason of the condition `Progressing`.
    pub(crate) fn progress(&self) -> String {
        self.condition("Progressing")["reason"].as_str().unwrap_or_default().to_owned()
    }

    /// The messages of the events of the controller.
    pub(crate) fn event_messages(&self) -> Vec<String> {
        self.events().into_iter().map(|(_, _, message)| message).collect()
    }
}

pub(crate) fn create_deployment(sandbox: &Sandbox, deployment: &DeploymentBuilder) -> Value {
    sandbox.create(&DEPLOYMENTS, as_sent(deployment.0.clone())).expect("the deployment must be valid")
}

pub(crate) fn create_set(sandbox: &Sandbox, set: &ReplicaSetBuilder) -> Value {
    let created = sandbox.create(&REPLICA_SETS, as_sent(set.0.clone())).expect("the replica set must be valid");
    let name = key(created["metadata"]["name"].as_str().expect("replica sets have names"));
    let status = serde_json::json!({ "status": set.0["status"] });
    sandbox.patch_status(&REPLICA_SETS, &name, &status).expect("the replica set must be there")
}
