//! Nodes that are silent, on an API server in the process.

use std::time::Duration;

use jiff::SignedDuration;
use kcm_framework::ControllerDescriptor;
use kcm_framework::api::ObjectKey;
use kcm_testing::sandbox::{Fault, LEASES, NODES, PODS, Sandbox, Verb};
use kcm_testing::{START, TestCluster, TestEnvironment, kill_after_each_write, passing_faults};
use serde_json::{Value, json};

use crate::node_lifecycle::DESCRIPTOR;
use crate::tests::{create_node, fits_role_of_node_controller, key};

/// The name of its client.
const NAME: &str = "node-controller";
const COMPONENT: &str = "node-controller";
pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn pod_key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

pub(super) fn lease_key(node: &str) -> ObjectKey {
    ObjectKey::namespaced("kube-node-lease", node)
}

/// Creates a Node that was ready at the start, with its lease.
pub(super) fn create(sandbox: &Sandbox, name: &str, zone: &str) {
    let condition = |type_: &str, status: &str| {
        json!({
            "type": type_, "status": status, "reason": "Kubelet", "message": "posted",
            "lastHeartbeatTime": START, "lastTransitionTime": START,
        })
    };
    let pressures = ["MemoryPressure", "DiskPressure", "PIDPressure"].map(|type_| condition(type_, "False"));
    let conditions: Vec<Value> = pressures.into_iter().chain([condition("Ready", "True")]).collect();
    create_node(
        sandbox,
        &json!({
            "metadata": { "name": name, "labels": { "topology.kubernetes.io/zone": zone } },
            "status": { "conditions": conditions },
        }),
    );
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "namespace": "kube-node-lease", "name": name },
        "spec": { "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-02T12:00:00.000000Z" },
    });
    sandbox.create(&LEASES, lease).expect("the lease must be valid");
}

pub(super) fn renew(sandbox: &Sandbox, node: &str) {
    let time = format!("{:.6}", sandbox.now());
    sandbox.patch(&LEASES, &lease_key(node), &json!({ "spec": { "renewTime": time } })).expect("the lease must exist");
}

fn create_pod(sandbox: &Sandbox, name: &str, node: &str) {
    create_pod_with(sandbox, name, node, &json!([]));
}

pub(super) fn create_pod_with(sandbox: &Sandbox, name: &str, node: &str, tolerations: &Value) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "shop", "name": name },
        "spec": { "nodeName": node, "tolerations": tolerations, "containers": [{ "name": "main", "image": "image" }] },
    });
    sandbox.create(&PODS, pod).expect("the pod must be valid");
    let ready = json!({ "type": "Ready", "status": "True", "reason": "Fine", "lastTransitionTime": START });
    let status = json!({ "status": { "phase": "Running", "conditions": [ready] } });
    sandbox.patch_status(&PODS, &pod_key(name), &status).expect("the pod must exist");
}

/// A node `live` that is to be kept alive, and `dead` that is not, in one zone; a Pod on each.
pub(super) fn environment() -> TestEnvironment {
    environment_of([DESCRIPTOR])
}

/// The same, for these controllers.
pub(super) fn environment_of(controllers: impl IntoIterator<Item = ControllerDescriptor>) -> TestEnvironment {
    TestEnvironment::new(controllers).namespace("shop").prepare(|sandbox| {
        for node in ["live", "dead"] {
            create(sandbox, node, "a");
            create_pod(sandbox, node, node);
        }
    })
}

pub(super) async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[NODES, LEASES, PODS]).await;
    cluster
}

/// Lets the time pass, in which `live` renews its lease.
pub(super) async fn pass(cluster: &TestCluster, seconds: u32) {
    for _ in 0..seconds.div_ceil(5) {
        cluster.advance(5 * SECOND).await;
        renew(cluster.sandbox(), "live");
    }
}

fn status_of(object: &Value, type_: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_);
    found.and_then(|condition| condition["status"].as_str()).unwrap_or_default().to_owned()
}

pub(super) fn node_status(cluster: &TestCluster, name: &str) -> String {
    status_of(&cluster.sandbox().get(&NODES, &key(name)).unwrap_or_default(), "Ready")
}

fn pod_status(cluster: &TestCluster, name: &str) -> String {
    status_of(&cluster.sandbox().get(&PODS, &pod_key(name)).unwrap_or_default(), "Ready")
}

/// The taints of a Node as `KEY:EFFECT`, without their prefix.
pub(super) fn taints(cluster: &TestCluster, name: &str) -> Vec<String> {
    let node = cluster.sandbox().get(&NODES, &key(name)).unwrap_or_default();
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let written = |taint: &Value| {
        format!("{}:{}", text(&taint["key"]).replace("node.kubernetes.io/", ""), text(&taint["effect"]))
    };
    taints.iter().map(written).collect()
}

fn live_reads(cluster: &TestCluster) -> usize {
    cluster.requests_of(NAME).iter().filter(|request| request.method == "GET").count()
}

const LOST: [&str; 2] = ["unreachable:NoSchedule", "unreachable:NoExecute"];

#[tokio::test(start_paused = true)]
async fn a_node_that_falls_silent_is_marked_and_tainted_and_its_pods_are_not_ready() {
    let cluster = start(environment()).await;
    pass(&cluster, 45).await;
    assert_eq!(node_status(&cluster, "dead"), "True");
    pass(&cluster, 15).await;
    assert_eq!([node_status(&cluster, "dead"), node_status(&cluster, "live")], ["Unknown", "True"]);
    assert_eq!([pod_status(&cluster, "dead"), pod_status(&cluster, "live")], ["False", "True"]);
    assert_eq!(taints(&cluster, "dead"), LOST);
    assert!(taints(&cluster, "live").is_empty());
    let node = cluster.sandbox().get(&NODES, &key("dead")).unwrap();
    for type_ in ["MemoryPressure", "DiskPressure", "PIDPressure"] {
        assert_eq!(status_of(&node, type_), "Unknown", "{type_}");
    }
    let ready = node["status"]["conditions"].as_array().unwrap().iter().find(|it| it["type"] == "Ready").unwrap();
    assert_eq!(ready["reason"], "NodeStatusUnknown");
    assert_eq!(ready["lastHeartbeatTime"], json!(START), "the heartbeat stays");
    let pod = cluster.sandbox().get(&PODS, &pod_key("dead")).unwrap();
    assert_eq!(pod["status"]["conditions"][0]["reason"], "Fine", "the reason stays");
    let expected = [
        "Normal NodeNotReady Node dead status is now: NodeNotReady",
        "Normal RegisteredNode Node dead event: Registered Node dead in Controller",
        "Normal RegisteredNode Node live event: Registered Node live in Controller",
        "Warning NodeNotReady Node is not ready",
    ];
    assert_eq!(cluster.events_of(COMPONENT), expected);
    assert_eq!(live_reads(&cluster), 1);
    let metrics = cluster.metrics();
    for metric in
        ["node_collector_zone_size", "node_collector_unhealthy_nodes_in_zone", "node_collector_evictions_total"]
    {
        assert!(metrics.lines().any(|line| line.starts_with(metric)), "{metric} in {metrics}");
    }
    fits_role_of_node_controller(&cluster);
    pass(&cluster, 600).await;
    assert_eq!(live_reads(&cluster), 1, "a silent node is read once");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_returns_loses_its_taints() {
    let cluster = start(environment()).await;
    pass(&cluster, 60).await;
    assert_eq!(taints(&cluster, "dead"), LOST);
    let ready = json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": cluster.sandbox().now() });
    let conditions = json!({ "status": { "conditions": [ready] } });
    cluster.sandbox().patch_status(&NODES, &key("dead"), &conditions).unwrap();
    cluster.settle().await;
    assert!(taints(&cluster, "dead").is_empty(), "{:?}", taints(&cluster, "dead"));
}

#[tokio::test(start_paused = true)]
async fn s18_taints_follow_the_conditions_at_once() {
    let cluster = start(environment()).await;
    cluster.settle().await;
    let pressure = json!({ "type": "DiskPressure", "status": "True" });
    cluster.sandbox().patch_status(&NODES, &key("live"), &json!({ "status": { "conditions": [pressure] } })).unwrap();
    cluster.settle().await;
    assert_eq!(taints(&cluster, "live"), ["disk-pressure:NoSchedule"]);
    cluster
        .sandbox()
        .patch(&NODES, &key("live"), &json!({ "spec": { "unschedulable": true, "taints": null } }))
        .unwrap();
    cluster.settle().await;
    assert!(taints(&cluster, "live").contains(&"unschedulable:NoSchedule".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn b6_a_restart_keeps_the_taints_of_a_node_that_is_lost() {
    let cluster = start(environment()).await;
    pass(&cluster, 60).await;
    let node = || cluster.sandbox().get(&NODES, &key("dead")).unwrap()["spec"]["taints"].clone();
    let before = node();
    let written = cluster.writes_of(NAME).len();
    cluster.kill();
    pass(&cluster, 120).await;
    assert_eq!(node(), before);
    assert_eq!(cluster.writes_of(NAME).len(), written, "at rest nothing is written");
}

#[tokio::test(start_paused = true)]
async fn t23_a_pod_that_was_not_marked_before_a_restart_is_marked_after_it() {
    let cluster = start(environment()).await;
    pass(&cluster, 60).await;
    let ready = json!({ "type": "Ready", "status": "True" });
    cluster.sandbox().patch_status(&PODS, &pod_key("dead"), &json!({ "status": { "conditions": [ready] } })).unwrap();
    cluster.kill();
    cluster
        .eventually("the pod is not ready", |sandbox| {
            status_of(&sandbox.get(&PODS, &pod_key("dead")).unwrap_or_default(), "Ready") == "False"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn b7_a_lease_that_was_renewed_behind_the_cache_keeps_its_node_ready() {
    let cluster = start(environment()).await;
    pass(&cluster, 30).await;
    cluster.sandbox().faults().hold_watches(&LEASES);
    for _ in 0..5 {
        cluster.advance(5 * SECOND).await;
        renew(cluster.sandbox(), "live");
        renew(cluster.sandbox(), "dead");
    }
    cluster.advance(5 * SECOND).await;
    assert_eq!([node_status(&cluster, "dead"), node_status(&cluster, "live")], ["True", "True"]);
    assert!(live_reads(&cluster) > 0);
    cluster.sandbox().faults().release_watches(&LEASES);
}

#[tokio::test(start_paused = true)]
async fn t10_a_live_read_that_fails_marks_nothing_and_judges_no_zone() {
    let cluster = start(environment()).await;
    pass(&cluster, 30).await;
    let unavailable = kcm_testing::sandbox::Status::new(500, "InternalError", "no");
    cluster.sandbox().faults().inject(Fault::on(Verb::Get).resource(LEASES).times(40).fail(unavailable));
    pass(&cluster, 40).await;
    assert_eq!(node_status(&cluster, "dead"), "True");
    assert!(taints(&cluster, "dead").is_empty());
    pass(&cluster, 600).await;
    assert_eq!(taints(&cluster, "dead"), LOST);
}

#[tokio::test(start_paused = true)]
async fn b8_an_outage_of_the_api_server_marks_no_node() {
    let cluster = start(environment().allow_error("API server")).await;
    pass(&cluster, 30).await;
    cluster.sandbox().faults().stop_api_server();
    cluster.advance(300 * SECOND).await;
    cluster.sandbox().faults().end_outage();
    // Kubelets need a while to report.
    cluster.advance(30 * SECOND).await;
    for node in ["live", "dead"] {
        renew(cluster.sandbox(), node);
    }
    pass(&cluster, 40).await;
    assert_eq!([node_status(&cluster, "dead"), node_status(&cluster, "live")], ["True", "True"]);
    pass(&cluster, 30).await;
    assert_eq!(node_status(&cluster, "dead"), "Unknown");
}

#[tokio::test(start_paused = true)]
async fn t13_many_silent_nodes_are_verified_with_one_list() {
    let cluster = start(environment().prepare(|sandbox| {
        for number in 0..20 {
            create(sandbox, &format!("n{number}"), "a");
        }
    }))
    .await;
    pass(&cluster, 120).await;
    for number in 0..20 {
        assert_eq!(node_status(&cluster, &format!("n{number}")), "Unknown");
    }
    assert_eq!(node_status(&cluster, "live"), "True");
    assert_eq!(live_reads(&cluster), 1);
    assert_eq!(taints(&cluster, "n0"), ["unreachable:NoSchedule"], "a small zone that is disrupted");
    fits_role_of_node_controller(&cluster);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_marks_no_node() {
    let cluster = start(environment()).await;
    pass(&cluster, 10).await;
    cluster.set_clock(SignedDuration::from_hours(5));
    pass(&cluster, 20).await;
    assert_eq!(node_status(&cluster, "dead"), "True");
    cluster.set_clock(SignedDuration::from_hours(-10));
    pass(&cluster, 30).await;
    assert_eq!([node_status(&cluster, "dead"), node_status(&cluster, "live")], ["Unknown", "True"]);
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_reports_behind_the_cache_wins() {
    let cluster = start(environment()).await;
    pass(&cluster, 45).await;
    cluster.sandbox().faults().hold_watches(&NODES);
    let ready = json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": cluster.sandbox().now() });
    let conditions = json!({ "status": { "conditions": [ready] } });
    cluster.sandbox().patch_status(&NODES, &key("dead"), &conditions).unwrap();
    pass(&cluster, 15).await;
    assert_eq!(node_status(&cluster, "dead"), "True");
    cluster.sandbox().faults().release_watches(&NODES);
    pass(&cluster, 20).await;
    assert_eq!(node_status(&cluster, "dead"), "True");
}

#[tokio::test(start_paused = true)]
async fn s38_if_no_node_reports_no_node_is_tainted_with_eviction() {
    let cluster = start(environment()).await;
    cluster.advance(120 * SECOND).await;
    for node in ["live", "dead"] {
        assert_eq!(node_status(&cluster, node), "Unknown");
        assert_eq!(taints(&cluster, node), ["unreachable:NoSchedule"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_node_and_a_recreated_one_are_recorded() {
    let cluster = start(environment()).await;
    pass(&cluster, 10).await;
    cluster.sandbox().delete_now(&NODES, &key("dead")).unwrap();
    pass(&cluster, 10).await;
    let removing = "Normal RemovingNode Node dead event: Removing Node dead from Controller";
    assert!(cluster.events_of(COMPONENT).iter().any(|event| event == removing));
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        cluster.watches(&[NODES, LEASES, PODS]).await;
        pass(cluster, 150).await;
        assert_eq!([node_status(cluster, "dead"), node_status(cluster, "live")], ["Unknown", "True"]);
        assert_eq!([pod_status(cluster, "dead"), pod_status(cluster, "live")], ["False", "True"]);
        assert_eq!(taints(cluster, "dead"), LOST);
        assert!(taints(cluster, "live").is_empty());
    })
    .await;
    assert!((3..=4).contains(&writes), "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn lost_responses_refusals_and_late_watches_change_nothing() {
    for fault in passing_faults() {
        let cluster = start(environment().allow_error("Server rejected event")).await;
        cluster.sandbox().faults().inject(fault);
        cluster.sandbox().faults().delay_events(&NODES, 7 * SECOND);
        pass(&cluster, 240).await;
        assert_eq!([node_status(&cluster, "dead"), node_status(&cluster, "live")], ["Unknown", "True"]);
        assert_eq!(taints(&cluster, "dead"), LOST);
        assert_eq!(pod_status(&cluster, "dead"), "False");
    }
}
