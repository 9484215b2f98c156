//! Whole endpoints on an API server in the process.

use std::time::Duration;

use kcm_framework::Format;
use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{EVENTS, Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use super::super::DESCRIPTOR;

const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");
const ENDPOINTS: Resource = Resource::namespaced("", "v1", "endpoints", "Endpoints");
const SLICES: Resource = Resource::namespaced("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice");
const SECOND: Duration = Duration::from_secs(1);

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop")
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[SERVICES, ENDPOINTS, SLICES]).await;
    cluster
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

fn create_service(sandbox: &Sandbox) {
    let service = json!({ "metadata": { "namespace": "shop", "name": "web" }, "spec": { "ports": [{ "port": 80 }] } });
    sandbox.create(&SERVICES, service).unwrap();
}

fn subsets(ips: &[&str]) -> Value {
    let addresses: Vec<Value> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
    json!([{ "addresses": addresses, "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }] }])
}

fn create_endpoints(sandbox: &Sandbox, ips: &[&str]) {
    let metadata =
        json!({ "namespace": "shop", "name": "web", "labels": { "team": "a" }, "annotations": { "note": "b" } });
    sandbox.create(&ENDPOINTS, json!({ "metadata": metadata, "subsets": subsets(ips) })).unwrap();
}

fn set_addresses(sandbox: &Sandbox, ips: &[&str]) {
    sandbox.patch(&ENDPOINTS, &key("web"), &json!({ "subsets": subsets(ips) })).unwrap();
}

fn slices(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.list(&SLICES, Some("shop"))
}

/// The addresses of all slices, sorted; one that is in two slices is there twice.
fn mirrored(sandbox: &Sandbox) -> Vec<String> {
    let slices = slices(sandbox);
    let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
    let mut addresses: Vec<String> =
        endpoints.map(|endpoint| endpoint["addresses"][0].as_str().unwrap().to_owned()).collect();
    addresses.sort_unstable();
    addresses
}

async fn has(cluster: &TestCluster, ips: &[&str]) {
    cluster.eventually(&format!("{ips:?} are mirrored"), |sandbox| mirrored(sandbox) == ips).await;
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_a_service_without_a_selector_are_mirrored_as_upstream_does() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox());
    create_endpoints(cluster.sandbox(), &["10.0.0.1", "10.0.0.2"]);
    has(&cluster, &["10.0.0.1", "10.0.0.2"]).await;
    let slice = slices(cluster.sandbox()).remove(0);
    let endpoints = cluster.sandbox().get(&ENDPOINTS, &key("web")).unwrap();
    assert_eq!(slice["metadata"]["generateName"], "web-");
    let labels = json!({ "team": "a", "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io" });
    assert_eq!((&slice["metadata"]["labels"], &slice["metadata"]["annotations"]), (&labels, &json!({ "note": "b" })));
    let owner = json!([{ "apiVersion": "v1", "kind": "Endpoints", "name": "web", "uid": endpoints["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true }]);
    assert_eq!(slice["metadata"]["ownerReferences"], owner);
    assert_eq!(slice["ports"], json!([{ "name": "http", "port": 8080, "protocol": "TCP" }]));
    assert_eq!(slice["endpoints"][0], json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }));

    set_addresses(cluster.sandbox(), &["10.0.0.3"]);
    has(&cluster, &["10.0.0.3"]).await;
    let annotations = json!({ "metadata": { "annotations": { "note": null, "other": "c" } } });
    cluster.sandbox().patch(&ENDPOINTS, &key("web"), &annotations).unwrap();
    let described = |sandbox: &Sandbox| slices(sandbox)[0]["metadata"]["annotations"] == json!({ "other": "c" });
    cluster.eventually("annotations follow", described).await;
    assert_eq!(slices(cluster.sandbox())[0]["metadata"]["uid"], slice["metadata"]["uid"], "it is one slice");
    cluster.settle().await;
    let writes = |cluster: &TestCluster| {
        cluster
            .requests_of("endpointslicemirroring-controller")
            .iter()
            .filter(|request| request.method != "GET")
            .count()
    };
    assert_eq!(writes(&cluster), 3);
    cluster.advance(60 * SECOND).await;
    assert_eq!(writes(&cluster), 3, "at rest nothing is written");
}

#[tokio::test(start_paused = true)]
async fn slices_are_deleted_where_endpoints_are_not_mirrored_any_more() {
    let skip = json!({ "metadata": { "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" } } });
    let leader = json!({ "metadata": { "annotations": { "control-plane.alpha.kubernetes.io/leader": "{}" } } });
    let selector = json!({ "spec": { "selector": { "app": "web" } } });
    for (name, resource, change) in [
        ("the label", ENDPOINTS, Some(skip)),
        ("a leader", ENDPOINTS, Some(leader)),
        ("a selector", SERVICES, Some(selector)),
        ("no service", SERVICES, None),
        ("no endpoints", ENDPOINTS, None),
    ] {
        let cluster = start(environment()).await;
        create_service(cluster.sandbox());
        create_endpoints(cluster.sandbox(), &["10.0.0.1"]);
        has(&cluster, &["10.0.0.1"]).await;
        let sandbox = cluster.sandbox();
        match change {
            Some(change) => sandbox.patch(&resource, &key("web"), &change).map(drop).unwrap(),
            None => sandbox.delete(&resource, &key("web")).map(drop).unwrap(),
        }
        cluster.eventually(name, |sandbox| slices(sandbox).is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn endpoints_without_a_service_wait_for_it() {
    let cluster = start(environment()).await;
    create_endpoints(cluster.sandbox(), &["10.0.0.1"]);
    cluster.advance(10 * SECOND).await;
    assert!(slices(cluster.sandbox()).is_empty());
    create_service(cluster.sandbox());
    has(&cluster, &["10.0.0.1"]).await;
}

#[tokio::test(start_paused = true)]
async fn addresses_beyond_the_limit_are_reported() {
    let cluster = start(environment().arguments(&["--mirroring-max-endpoints-per-subset=1"])).await;
    create_service(cluster.sandbox());
    create_endpoints(cluster.sandbox(), &["10.0.0.1", "10.0.0.2"]);
    has(&cluster, &["10.0.0.1"]).await;
    let reported = |sandbox: &Sandbox| {
        let events = sandbox.list(&EVENTS, Some("shop"));
        events.iter().any(|event| {
            event["reason"] == "TooManyAddressesToMirror"
                && event["source"]["component"] == "endpoint-slice-mirroring-controller"
                && event["involvedObject"]["kind"] == "Endpoints"
        })
    };
    cluster.eventually("it is recorded", reported).await;
}

#[tokio::test(start_paused = true)]
async fn what_others_do_to_slices_is_undone() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox());
    create_endpoints(cluster.sandbox(), &["10.0.0.1"]);
    has(&cluster, &["10.0.0.1"]).await;
    let name = || slices(cluster.sandbox())[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.sandbox().patch(&SLICES, &key(&name()), &json!({ "endpoints": [] })).unwrap();
    has(&cluster, &["10.0.0.1"]).await;
    cluster.sandbox().delete(&SLICES, &key(&name())).unwrap();
    has(&cluster, &["10.0.0.1"]).await;
}

#[tokio::test(start_paused = true)]
async fn faults_lead_to_no_other_slices() {
    let lost = |number| Fault::on_writes().resource(SLICES).skip(number).times(1).lose_answer();
    let busy = Fault::on(Verb::Update).resource(SLICES).times(3).fail(Status::too_many_requests(1));
    for fault in [lost(0), lost(1), busy] {
        let cluster = start(environment()).await;
        cluster.sandbox().faults().delay_events(&SLICES, 2 * SECOND);
        cluster.sandbox().faults().inject(fault);
        create_service(cluster.sandbox());
        create_endpoints(cluster.sandbox(), &["10.0.0.1"]);
        has(&cluster, &["10.0.0.1"]).await;
        set_addresses(cluster.sandbox(), &["10.0.0.2"]);
        has(&cluster, &["10.0.0.2"]).await;
        cluster.advance(60 * SECOND).await;
        assert_eq!((slices(cluster.sandbox()).len(), mirrored(cluster.sandbox())), (1, vec!["10.0.0.2".to_owned()]));
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        cluster.watches(&[SERVICES, ENDPOINTS, SLICES]).await;
        create_service(cluster.sandbox());
        create_endpoints(cluster.sandbox(), &["10.0.0.1", "fd00::1"]);
        has(cluster, &["10.0.0.1", "fd00::1"]).await;
        set_addresses(cluster.sandbox(), &["10.0.0.2"]);
        has(cluster, &["10.0.0.2"]).await;
        cluster.advance(60 * SECOND).await;
        assert_eq!(slices(cluster.sandbox()).len(), 1);
    })
    .await;
    assert_eq!(writes, 4);
}

#[tokio::test(start_paused = true)]
async fn slices_of_another_controller_stay() {
    let cluster = start(environment()).await;
    let labels = json!({ "kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "me" });
    let metadata = json!({ "namespace": "shop", "name": "of-me", "labels": labels });
    let slice = json!({ "metadata": metadata, "addressType": "IPv4", "endpoints": [], "ports": [] });
    cluster.sandbox().create(&SLICES, slice).unwrap();
    create_service(cluster.sandbox());
    create_endpoints(cluster.sandbox(), &["10.0.0.1"]);
    has(&cluster, &["10.0.0.1"]).await;
    let before = cluster.sandbox().get(&SLICES, &key("of-me"));
    cluster.sandbox().delete(&ENDPOINTS, &key("web")).unwrap();
    cluster.eventually("the mirrored slice is deleted", |sandbox| slices(sandbox).len() == 1).await;
    cluster.advance(60 * SECOND).await;
    assert_eq!(cluster.sandbox().get(&SLICES, &key("of-me")), before);
}

#[tokio::test(start_paused = true)]
async fn that_a_namespace_is_terminating_by_now_is_no_failure() {
    let terminating = Status::new(403, "Forbidden", "it is being terminated");
    let terminating = terminating.with_cause("NamespaceTerminating", "shop", "metadata.namespace");
    let cluster = start(environment()).await;
    cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(SLICES).fail(terminating));
    create_service(cluster.sandbox());
    create_endpoints(cluster.sandbox(), &["10.0.0.1"]);
    cluster.advance(20 * 60 * SECOND).await;
    let requests = cluster.requests_of("endpointslicemirroring-controller");
    assert_eq!(requests.iter().filter(|request| request.method == "POST").count(), 1, "it is not tried again");
    assert!(cluster.sandbox().list(&EVENTS, Some("shop")).is_empty());
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_are_being_deleted_get_no_new_slice() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox());
    create_endpoints(cluster.sandbox(), &["10.0.0.1"]);
    has(&cluster, &["10.0.0.1"]).await;
    let held = json!({ "metadata": { "finalizers": ["example.com/f"] } });
    cluster.sandbox().patch(&ENDPOINTS, &key("web"), &held).unwrap();
    cluster.sandbox().delete(&ENDPOINTS, &key("web")).unwrap();
    set_addresses(cluster.sandbox(), &["10.0.0.2", "fd00::1"]);
    has(&cluster, &["10.0.0.2"]).await;
    let name = slices(cluster.sandbox())[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.sandbox().delete(&SLICES, &key(&name)).unwrap();
    cluster.consistently("no slice is created", 10 * SECOND, |sandbox| slices(sandbox).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn metrics_count_endpoints_and_slices() {
    let cluster = start(environment().arguments(&["--mirroring-max-endpoints-per-subset=2"])).await;
    create_service(cluster.sandbox());
    create_endpoints(cluster.sandbox(), &["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    has(&cluster, &["10.0.0.1", "10.0.0.2"]).await;
    let shows = |lines: &[&str]| {
        let metrics = String::from_utf8(cluster.scrape(Format::Text)).unwrap();
        for line in lines {
            let line = format!("endpoint_slice_mirroring_controller_{line}");
            assert!(metrics.lines().any(|found| found == line), "{line} is missing in {metrics}");
        }
    };
    cluster.settle().await;
    shows(&[
        "endpoints_desired 2",
        "num_endpoint_slices 1",
        "desired_endpoint_slices 1",
        "changes{operation=\"create\"} 1",
        "endpoints_added_per_sync_sum 2",
        "addresses_skipped_per_sync_sum 1",
    ]);
    set_addresses(cluster.sandbox(), &["10.0.0.2"]);
    has(&cluster, &["10.0.0.2"]).await;
    cluster.settle().await;
    shows(&["endpoints_desired 1", "changes{operation=\"update\"} 1", "endpoints_removed_per_sync_sum 1"]);
    cluster.sandbox().delete(&ENDPOINTS, &key("web")).unwrap();
    has(&cluster, &[]).await;
    cluster.settle().await;
    shows(&["endpoints_desired 0", "num_endpoint_slices 0", "desired_endpoint_slices 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_retried_after_a_second_and_then_after_twice_as_long_each_time() {
    let cluster = start(environment().allow_error("failed to create EndpointSlice")).await;
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(SLICES).times(5).fail(refused));
    create_service(cluster.sandbox());
    create_endpoints(cluster.sandbox(), &["10.0.0.1"]);
    cluster.eventually("there is a slice", |sandbox| slices(sandbox).len() == 1).await;
    let mut requests = cluster.requests_of("endpointslicemirroring-controller");
    requests.retain(|request| request.method == "POST" && request.path.ends_with("/endpointslices"));
    let gaps: Vec<u64> = requests.windows(2).map(|two| two[1].at.saturating_sub(two[0].at).as_secs()).collect();
    assert_eq!(gaps, [1, 2, 4, 8, 16]);
}

#[tokio::test(start_paused = true)]
async fn a_slice_that_is_terminating_is_replaced() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox());
    create_endpoints(cluster.sandbox(), &["10.0.0.1"]);
    has(&cluster, &["10.0.0.1"]).await;
    let name = slices(cluster.sandbox())[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let held = json!({ "metadata": { "finalizers": ["example.com/f"] } });
    cluster.sandbox().patch(&SLICES, &key(&name), &held).unwrap();
    cluster.sandbox().delete(&SLICES, &key(&name)).unwrap();
    has(&cluster, &["10.0.0.1", "10.0.0.1"]).await;
    let released = json!({ "metadata": { "finalizers": null } });
    cluster.sandbox().patch(&SLICES, &key(&name), &released).unwrap();
    has(&cluster, &["10.0.0.1"]).await;
}

#[tokio::test(start_paused = true)]
async fn slices_stay_while_the_service_cannot_be_decoded() {
    let cluster = start(environment().allow_error("Object cannot be decoded")).await;
    create_service(cluster.sandbox());
    create_endpoints(cluster.sandbox(), &["10.0.0.1", "10.0.0.2"]);
    has(&cluster, &["10.0.0.1", "10.0.0.2"]).await;
    let ports = |node_port: Value| json!({ "spec": { "ports": [{ "port": 80, "nodePort": node_port }] } });
    let make_undecodable = || {
        let direct = DirectClient::new(cluster.sandbox());
        direct.merge(&SERVICES, &key("web"), None, &ports(json!("many"))).unwrap();
    };
    make_undecodable();
    let are = |expected: &'static [&str]| move |sandbox: &Sandbox| mirrored(sandbox) == expected;
    cluster.consistently("the slices stay", 120 * SECOND, are(&["10.0.0.1", "10.0.0.2"])).await;
    set_addresses(cluster.sandbox(), &["10.0.0.3"]);
    cluster.consistently("the slices stay", 60 * SECOND, are(&["10.0.0.1", "10.0.0.2"])).await;
    cluster.sandbox().patch(&SERVICES, &key("web"), &ports(json!(0))).unwrap();
    has(&cluster, &["10.0.0.3"]).await;

    make_undecodable();
    cluster.settle().await;
    cluster.sandbox().delete(&SERVICES, &key("web")).unwrap();
    has(&cluster, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_slice_whose_endpoints_cannot_be_read_is_replaced() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox());
    create_endpoints(cluster.sandbox(), &["10.0.0.1"]);
    has(&cluster, &["10.0.0.1"]).await;
    let name = slices(cluster.sandbox())[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let broken = json!({ "endpoints": "none", "metadata": { "generation": 9 } });
    DirectClient::new(cluster.sandbox()).merge(&SLICES, &key(&name), None, &broken).unwrap();
    set_addresses(cluster.sandbox(), &["10.0.0.1", "10.0.0.2"]);
    let is_replaced = |sandbox: &Sandbox| {
        slices(sandbox).iter().all(|slice| slice["metadata"]["name"] != *name)
            && mirrored(sandbox) == ["10.0.0.1", "10.0.0.2"]
    };
    cluster.eventually("the slice is replaced", is_replaced).await;
}
