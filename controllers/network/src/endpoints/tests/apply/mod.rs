//! Whole services on an API server in the process.

mod faults;
mod life;

use std::collections::BTreeSet;

use jiff::Timestamp;
use kcm_framework::api::Resource;
use kcm_testing::sandbox::{EVENTS, PODS, Sandbox, SandboxOptions};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use crate::endpoints::DESCRIPTOR;
use crate::shared::tests::merge;
use crate::shared::tests::services_of_pods::{
    BATCH_PERIOD, BATCHES, GonePods, NAMESPACE, SERVICES, create_pod_on, create_service, key, make_decodable,
    make_undecodable, pod_name, set_ready,
};

const ENDPOINTS: Resource = Resource::namespaced("", "v1", "endpoints", "Endpoints");

fn environment() -> TestEnvironment {
    let start: Timestamp = "2026-01-02T12:00:00Z".parse().unwrap();
    let options = SandboxOptions { start, ..SandboxOptions::default() };
    TestEnvironment::new([DESCRIPTOR]).sandbox_options(options).namespace(NAMESPACE)
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[SERVICES, PODS, ENDPOINTS]).await;
    cluster
}

/// Creates endpoints with one address and this metadata, as another client does.
fn create_endpoints(sandbox: &Sandbox, name: &str, metadata: &Value) {
    let mut endpoints = json!({
        "metadata": { "namespace": NAMESPACE, "name": name },
        "subsets": [{ "addresses": [{ "ip": "10.9.9.9" }], "ports": [{ "port": 1 }] }],
    });
    merge(&mut endpoints["metadata"], metadata);
    sandbox.create(&ENDPOINTS, endpoints).unwrap();
}

/// Creates a pod of the service with the address of its number, ready.
fn create_pod(sandbox: &Sandbox, number: usize) {
    create_pod_on(sandbox, number, "node-a");
}

/// The endpoints of the service; `null` where there are none.
fn endpoints(sandbox: &Sandbox) -> Value {
    sandbox.get(&ENDPOINTS, &key("web")).unwrap_or_default()
}

/// The numbers of the pods that are ready addresses, sorted; absent where there are no endpoints. One that is in two subsets
/// is there twice.
fn ready(sandbox: &Sandbox) -> Option<Vec<usize>> {
    let endpoints = sandbox.get(&ENDPOINTS, &key("web"))?;
    let subsets = endpoints["subsets"].as_array().into_iter().flatten();
    let addresses = subsets.flat_map(|subset| subset["addresses"].as_array().into_iter().flatten());
    let name = |address: &Value| address["targetRef"]["name"].as_str()?.trim_start_matches("web-").parse().ok();
    let mut numbers: Vec<usize> = addresses.map(|address| name(address).unwrap_or_default()).collect();
    numbers.sort_unstable();
    Some(numbers)
}

/// Waits until the endpoints exist with just these pods as ready addresses.
async fn has_ready(cluster: &TestCluster, numbers: impl IntoIterator<Item = usize>) {
    let numbers: Vec<usize> = numbers.into_iter().collect();
    let description = format!("{} pods are ready addresses", numbers.len());
    cluster.eventually(&description, |sandbox| ready(sandbox).as_ref() == Some(&numbers)).await;
}

/// Method and path of the writes of endpoints.
fn writes(cluster: &TestCluster) -> Vec<(String, String)> {
    let mut requests = cluster.requests_of("endpoint-controller");
    requests.retain(|request| request.method != "GET" && request.path.contains("endpoints"));
    requests.into_iter().map(|request| (request.method, request.path)).collect()
}

/// Reason and message of the warnings of the controller about the endpoints of the service.
fn warnings(sandbox: &Sandbox) -> Vec<(String, String)> {
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let mut events = sandbox.list(&EVENTS, Some(NAMESPACE));
    events.retain(|event| {
        event["source"]["component"] == "endpoint-controller"
            && event["involvedObject"]["kind"] == "Endpoints"
            && event["involvedObject"]["name"] == "web"
            && event["type"] == "Warning"
    });
    events.iter().map(|event| (text(event, "reason"), text(event, "message"))).collect()
}

/// The uids of the pods that addresses name.
fn named_pods(sandbox: &Sandbox) -> BTreeSet<String> {
    let endpoints = endpoints(sandbox);
    let subsets = endpoints["subsets"].as_array().into_iter().flatten();
    let lists = subsets.flat_map(|subset| [&subset["addresses"], &subset["notReadyAddresses"]]);
    let addresses = lists.flat_map(|list| list.as_array().into_iter().flatten());
    addresses.filter_map(|address| address["targetRef"]["uid"].as_str().map(str::to_owned)).collect()
}
