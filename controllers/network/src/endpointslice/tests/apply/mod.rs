//! Whole services on an API server in the process.

mod faults;
mod life;
mod metrics;

use std::collections::BTreeSet;

use jiff::Timestamp;
use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::sandbox::{EVENTS, NODES, PODS, Sandbox, SandboxOptions};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use crate::endpointslice::DESCRIPTOR;
use crate::shared::tests::services_of_pods::{
    BATCH_PERIOD, BATCHES, GonePods, NAMESPACE, SERVICES, create_pod_on, create_service, key, make_decodable,
    make_undecodable, pod_name, set_ready,
};

const SLICES: Resource = Resource::namespaced("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice");

fn start_time() -> Timestamp {
    "2026-01-02T12:00:00Z".parse().unwrap()
}

/// An environment with two nodes, `node-a` and `node-b`, in zones `a` and `b`.
fn environment() -> TestEnvironment {
    let options = SandboxOptions { start: start_time(), ..SandboxOptions::default() };
    TestEnvironment::new([DESCRIPTOR]).sandbox_options(options).namespace(NAMESPACE).prepare(|sandbox| {
        for zone in ["a", "b"] {
            let labels = json!({ "topology.kubernetes.io/zone": zone });
            let status =
                json!({ "allocatable": { "cpu": "2" }, "conditions": [{ "type": "Ready", "status": "True" }] });
            let name = format!("node-{zone}");
            sandbox.create(&NODES, json!({ "metadata": { "name": name, "labels": labels } })).unwrap();
            sandbox.patch_status(&NODES, &ObjectKey::cluster_scoped(name), &json!({ "status": status })).unwrap();
        }
    })
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[SERVICES, PODS, SLICES, NODES]).await;
    cluster
}

/// Creates a pod of the service with the address of its number, ready, on the node of a zone.
fn create_pod(sandbox: &Sandbox, number: usize, zone: &str) {
    create_pod_on(sandbox, number, &format!("node-{zone}"));
}

fn slices(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.list(&SLICES, Some(NAMESPACE))
}

/// The numbers of the pods that are ready endpoints of a slice of the service, sorted; one that is in two slices is there
/// twice.
fn ready(sandbox: &Sandbox) -> Vec<usize> {
    let slices = slices(sandbox);
    let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
    let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] == true);
    let mut numbers: Vec<usize> = ready
        .map(|endpoint| endpoint["targetRef"]["name"].as_str().unwrap().trim_start_matches("web-").parse().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Waits until just these pods are ready endpoints.
async fn has_ready(cluster: &TestCluster, numbers: impl IntoIterator<Item = usize>) {
    let numbers: Vec<usize> = numbers.into_iter().collect();
    cluster.eventually(&format!("{numbers:?} are ready endpoints"), |sandbox| ready(sandbox) == numbers).await;
}

/// Method and path of the writes of the controller, those of events aside.
fn writes(cluster: &TestCluster) -> Vec<(String, String)> {
    let mut requests = cluster.requests_of("endpointslice-controller");
    requests.retain(|request| request.method != "GET" && request.path.contains("endpointslices"));
    requests.into_iter().map(|request| (request.method, request.path)).collect()
}

/// Type, reason and message of the events of the controller.
fn events(sandbox: &Sandbox) -> Vec<(String, String, String)> {
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let mut events = sandbox.list(&EVENTS, Some(NAMESPACE));
    events.retain(|event| event["source"]["component"] == "endpoint-slice-controller");
    events.iter().map(|event| (text(event, "type"), text(event, "reason"), text(event, "message"))).collect()
}

/// The uids of the pods that endpoints of slices name.
fn named_pods(sandbox: &Sandbox) -> BTreeSet<String> {
    let slices = slices(sandbox);
    let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    endpoints.filter_map(|endpoint| endpoint["targetRef"]["uid"].as_str().map(str::to_owned)).collect()
}
