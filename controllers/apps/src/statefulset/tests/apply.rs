//! A manager with the controller on an API server in the process, and a kubelet that makes every pod ready.

use std::ops::Deref;

use kcm_framework::api::{KnownView as _, Resource, views};
use kcm_testing::sandbox::{PODS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use super::fixtures::{merge, set_json};
use crate::statefulset::DESCRIPTOR;
use crate::tests::cluster::{NAMESPACE, as_sent, key};

pub(super) const SETS: Resource = views::StatefulSet::RESOURCE;
pub(super) const REVISIONS: Resource = views::ControllerRevision::RESOURCE;
pub(super) const CLAIMS: Resource = views::PersistentVolumeClaim::RESOURCE;

/// A stateful set `web` to create, with changes merged into it.
pub(super) fn web(replicas: i32, changes: Value) -> Value {
    let mut set = as_sent(set_json(json!({ "spec": { "replicas": replicas } })));
    set.as_object_mut().unwrap().remove("status");
    merge(&mut set, changes);
    set
}

/// A manager with the controller, which stops on drop.
pub(super) struct Cluster(crate::tests::cluster::Cluster);

impl Deref for Cluster {
    type Target = crate::tests::cluster::Cluster;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Cluster {
    pub(super) async fn start_in(environment: TestEnvironment) -> Self {
        let watched = [PODS, SETS, REVISIONS, CLAIMS];
        Self(crate::tests::cluster::Cluster::start_in(environment, &[DESCRIPTOR], &watched).await)
    }

    pub(super) async fn start(prepare: impl FnOnce(&Sandbox) + 'static) -> Self {
        Self(crate::tests::cluster::Cluster::start(&[DESCRIPTOR], &[PODS, SETS, REVISIONS, CLAIMS], prepare).await)
    }

    pub(super) fn create(&self, set: Value) -> Value {
        self.sandbox().create(&SETS, set).expect("the stateful set must be valid")
    }

    pub(super) fn set(&self) -> Value {
        self.object(&SETS, "web")
    }

    pub(super) fn list(&self, resource: &Resource) -> Vec<Value> {
        self.sandbox().list(resource, Some(NAMESPACE))
    }

    /// The kinds and names of what the controller created, in order.
    pub(super) fn created(&self) -> Vec<String> {
        let name =
            |body: &Value| format!("{} {}", body["kind"].as_str().unwrap(), body["metadata"]["name"].as_str().unwrap());
        self.bodies("POST").iter().map(name).collect()
    }

    /// The names of what the controller deleted, in order.
    pub(super) fn deleted(&self) -> Vec<String> {
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().split('?').next().unwrap().to_owned();
        self.requests("DELETE").iter().map(|request| name(&request.path)).collect()
    }
}

pub(super) fn patch(cluster: &TestCluster, changes: &Value) {
    cluster.sandbox().patch(&SETS, &key("web"), changes).expect("the stateful set must be there");
}

pub(super) fn scale(cluster: &TestCluster, replicas: i32) {
    patch(cluster, &json!({ "spec": { "replicas": replicas } }));
}

pub(super) fn roll(cluster: &TestCluster, image: &str) {
    let containers = json!([{ "name": "main", "image": image }]);
    patch(cluster, &json!({ "spec": { "template": { "spec": { "containers": containers } } } }));
}

/// Makes every pod ready, as kubelets do, unless its image is `broken`.
pub(super) fn run_pods(sandbox: &Sandbox) {
    for pod in sandbox.list(&PODS, Some(NAMESPACE)) {
        let is_broken = pod["spec"]["containers"][0]["image"].as_str().is_some_and(|image| image.starts_with("broken"));
        let is_new = pod["status"]["phase"] == "Pending" && pod["metadata"]["deletionTimestamp"].is_null();
        if is_new && !is_broken {
            let name = pod["metadata"]["name"].as_str().expect("pods have names");
            drop(sandbox.set_pod_ready(&key(name), true, sandbox.now()));
        }
    }
}

/// The names and images of the pods.
pub(super) fn images(sandbox: &Sandbox) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pods = sandbox.list(&PODS, Some(NAMESPACE));
    pods.iter().map(|pod| (text(&pod["metadata"]["name"]), text(&pod["spec"]["containers"][0]["image"]))).collect()
}

/// Whether the status is that of these pods, all of which are ready.
pub(super) fn is_complete(sandbox: &Sandbox, pods: &[(&str, &str)]) -> bool {
    let set = sandbox.get(&SETS, &key("web")).expect("it must be there");
    let status = &set["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let wanted: Vec<_> = pods.iter().map(|(name, image)| ((*name).to_owned(), (*image).to_owned())).collect();
    let number = i64::try_from(pods.len()).unwrap();
    images(sandbox) == wanted
        && ["replicas", "readyReplicas", "availableReplicas"].iter().all(|field| count(field) == number)
        && status["observedGeneration"] == set["metadata"]["generation"]
}

/// Waits until there are these pods and no others, all of them ready and reported, with a kubelet.
pub(super) async fn has(cluster: &TestCluster, pods: &[(&str, &str)]) {
    let what = format!("there are {pods:?}, and they are reported");
    cluster
        .eventually(&what, |sandbox| {
            run_pods(sandbox);
            is_complete(sandbox, pods)
        })
        .await;
}
