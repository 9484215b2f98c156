//! A manager with the daemon set controller, for tests.

use std::collections::BTreeMap;
use std::ops::Deref;

use kcm_framework::api::views::{ControllerRevision, DaemonSet};
use kcm_framework::api::{KnownView as _, Resource};
use kcm_sandbox_apiserver::{NODES, PODS, Sandbox};
use kcm_testing::TestCluster;
use serde_json::{Value, json};

use super::fixtures::{DaemonSetBuilder, NAMESPACE, key};
use crate::daemonset::DESCRIPTOR;
use crate::tests::cluster::as_sent;

pub(crate) const DAEMON_SETS: Resource = DaemonSet::RESOURCE;
pub(crate) const REVISIONS: Resource = ControllerRevision::RESOURCE;

/// An API server and a manager on it, which stops on drop.
pub(crate) struct Cluster(crate::tests::cluster::Cluster);

impl Deref for Cluster {
    type Target = crate::tests::cluster::Cluster;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Cluster {
    /// Starts the controller with nodes of these names.
    pub(crate) async fn start(nodes: &'static [&'static str], prepare: impl FnOnce(&Sandbox) + 'static) -> Self {
        let prepare = move |sandbox: &Sandbox| {
            for name in nodes {
                create_node(sandbox, name);
            }
            prepare(sandbox);
        };
        let watched = [PODS, NODES, DAEMON_SETS, REVISIONS];
        Self(crate::tests::cluster::Cluster::start(&[DESCRIPTOR], &watched, prepare).await)
    }

    pub(crate) fn create(&self, set: &DaemonSetBuilder) -> Value {
        create_set(self.sandbox(), set)
    }

    pub(crate) fn status(&self) -> Value {
        status(self.sandbox())
    }

    pub(crate) fn patch(&self, merge_patch: &Value) {
        self.sandbox().patch(&DAEMON_SETS, &key("agent"), merge_patch).expect("the daemon set must be there");
    }

    pub(crate) fn taint(&self, node: &str, taints: &Value) {
        let node = kcm_framework::api::ObjectKey::cluster_scoped(node);
        self.sandbox().patch(&NODES, &node, &json!({ "spec": { "taints": taints } })).expect("the node must be there");
    }

    /// Revisions by number.
    pub(crate) fn revisions(&self) -> BTreeMap<i64, Value> {
        let revisions = self.sandbox().list(&REVISIONS, Some(NAMESPACE));
        revisions.into_iter().map(|revision| (revision["revision"].as_i64().unwrap_or(-1), revision)).collect()
    }

    /// The images by node, of pods that are not being deleted.
    pub(crate) fn images(&self) -> Vec<(String, String)> {
        let mut images: Vec<_> = self.pods().iter().filter(|pod| !is_terminating(pod)).map(row).collect();
        images.sort();
        images
    }
}

fn row(pod: &Value) -> (String, String) {
    let image = pod.pointer("/spec/containers/0/image").and_then(Value::as_str).unwrap_or_default();
    (target(pod), image.to_owned())
}

pub(crate) fn create_node(sandbox: &Sandbox, name: &str) {
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
    sandbox.create(&NODES, node).expect("the node must be valid");
    // The node is ready: admission taints new nodes until they are.
    let untainted = json!({ "spec": { "taints": null } });
    sandbox
        .patch(&NODES, &kcm_framework::api::ObjectKey::cluster_scoped(name), &untainted)
        .expect("the node must be there");
}

pub(crate) fn create_set(sandbox: &Sandbox, set: &DaemonSetBuilder) -> Value {
    sandbox.create(&DAEMON_SETS, as_sent(set.0.clone())).expect("the daemon set must be valid")
}

pub(crate) fn status(sandbox: &Sandbox) -> Value {
    sandbox.get(&DAEMON_SETS, &key("agent")).expect("the daemon set must be there")["status"].clone()
}

/// The merge patch that gives the daemon set another template.
pub(crate) fn with_image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
}

pub(crate) fn is_terminating(pod: &Value) -> bool {
    pod["metadata"].get("deletionTimestamp").is_some()
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|it| it["type"] == "Ready" && it["status"] == "True"))
}

/// The node that a pod runs on, or is made for.
pub(crate) fn target(pod: &Value) -> String {
    const NAMES: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0\
                         /matchFields/0/values/0";
    let name = pod.pointer("/spec/nodeName").or_else(|| pod.pointer(NAMES));
    name.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Acts as scheduler and kubelets: deletes terminating pods, and makes pods ready unless their image is `broken`.
pub(crate) fn run_pods(sandbox: &Sandbox) {
    for pod in sandbox.list(&PODS, Some(NAMESPACE)) {
        let key = key(pod["metadata"]["name"].as_str().expect("pods have names"));
        let (node, image) = row(&pod);
        if is_terminating(&pod) {
            sandbox.delete_now(&PODS, &key).expect("the pod must be there");
        } else if pod["spec"].get("nodeName").is_none() {
            sandbox.bind_pod(&key, &node).expect("the pod must be there");
        } else if !is_ready(&pod) && !image.starts_with("broken") && pod["status"]["phase"] == "Pending" {
            sandbox.set_pod_ready(&key, true, sandbox.now()).expect("the pod must be there");
        }
    }
}

/// Runs pods until every node that should run the daemon has an available pod of the present template, and asserts
/// `invariant` all the while.
pub(crate) async fn rolls_out(cluster: &TestCluster, invariant: impl Fn(&[Value])) {
    cluster
        .eventually("it is rolled out", |sandbox| {
            invariant(&sandbox.list(&PODS, Some(NAMESPACE)));
            run_pods(sandbox);
            let set = sandbox.get(&DAEMON_SETS, &key("agent")).expect("the daemon set must be there");
            let (status, desired) = (&set["status"], &set["status"]["desiredNumberScheduled"]);
            let pods = sandbox.list(&PODS, Some(NAMESPACE));
            status["observedGeneration"] == set["metadata"]["generation"]
                && ["updatedNumberScheduled", "numberAvailable"].iter().all(|count| status[count] == *desired)
                && *desired == json!(pods.len())
        })
        .await;
    cluster.settle().await;
}

/// Asserts that no node has two pods, and that at most so many of so many nodes are without a ready pod.
pub(crate) fn one_each_and_unavailable_at_most(pods: &[Value], nodes: usize, unavailable: usize) {
    let mut on: BTreeMap<String, usize> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !is_terminating(pod)) {
        *on.entry(target(pod)).or_default() += 1;
    }
    assert!(on.values().all(|count| *count == 1), "two pods on a node: {on:?}");
    let serving = pods.iter().filter(|pod| is_ready(pod) && !is_terminating(pod)).count();
    assert!(serving + unavailable >= nodes, "{serving} of {nodes} serve");
}

/// Asserts that no node has more than two pods that are not being deleted, that at most so many nodes have two, and that
/// every node has a ready one.
pub(crate) fn surging_at_most(pods: &[Value], nodes: usize, surge: usize) {
    let mut on: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !is_terminating(pod)) {
        let (count, ready) = on.entry(target(pod)).or_default();
        *count += 1;
        *ready += usize::from(is_ready(pod));
    }
    assert!(on.values().all(|(count, _)| *count <= 2), "three pods on a node: {on:?}");
    assert!(on.values().filter(|(count, ready)| *count == 2 && *ready < 2).count() <= surge, "{on:?}");
    assert_eq!(on.values().filter(|(_, ready)| *ready > 0).count(), nodes, "every node is served: {on:?}");
}
