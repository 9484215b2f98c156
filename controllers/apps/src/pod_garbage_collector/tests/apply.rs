//! Whole rounds on an API server in the process.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, NODES, PODS, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use super::node;
use crate::pod_garbage_collector::DESCRIPTOR;
use crate::tests::cluster::{NAMESPACE, as_sent, environment, key, now};
use crate::tests::fixtures::{PodBuilder, pod};

const ACCOUNT: &str = "pod-garbage-collector";
const SECOND: Duration = Duration::from_secs(1);

/// Creates a pod on its node, in its phase.
pub(super) fn create(sandbox: &Sandbox, pod: &PodBuilder) {
    let pod = pod.clone().orphan().with("/spec", "containers", json!([{ "name": "main", "image": "image" }])).0;
    let created = sandbox.create(&PODS, as_sent(pod.clone())).expect("the pod must be valid");
    let status = json!({ "status": pod["status"] });
    let key = key(created["metadata"]["name"].as_str().expect("pods have names"));
    sandbox.patch_status(&PODS, &key, &status).expect("the pod must be there");
}

fn create_node(sandbox: &Sandbox, node: Value) {
    sandbox.create(&NODES, node).expect("the node must be valid");
}

/// A cluster with one ready node, a pod on it, and a pod on a node that does not exist.
fn with_orphan() -> TestEnvironment {
    environment(&[DESCRIPTOR]).prepare(|sandbox| {
        create_node(sandbox, node("node", true, &[]));
        create(sandbox, &pod("kept").node("node"));
        create(sandbox, &pod("orphan").node("gone"));
    })
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[PODS, NODES]).await;
    cluster
}

fn names(sandbox: &Sandbox) -> Vec<String> {
    let pods = sandbox.list(&PODS, Some(NAMESPACE));
    let mut names: Vec<String> = pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

/// Method and the end of the path of each request that writes.
fn writes(cluster: &TestCluster) -> Vec<String> {
    let requests = cluster.requests_of(ACCOUNT).into_iter().filter(|request| request.method != "GET");
    requests.map(|request| format!("{} {}", request.method, request.path.rsplit("/pods/").next().unwrap())).collect()
}

fn counted(cluster: &TestCluster, metric: &str, reason: &str) -> bool {
    let line = format!("pod_gc_collector_{metric}{{namespace=\"{NAMESPACE}\",reason=\"{reason}\"}} 1");
    cluster.metrics().lines().any(|found| found == line)
}

#[tokio::test(start_paused = true)]
async fn an_orphan_is_failed_and_deleted_after_quarantine_and_a_live_look() {
    let cluster = start(with_orphan()).await;
    cluster.advance(39 * SECOND).await;
    assert!(cluster.requests_of(ACCOUNT).is_empty(), "{:?}", cluster.requests_of(ACCOUNT));
    cluster.eventually("the orphan is gone", |sandbox| names(sandbox) == ["kept"]).await;
    let waited = cluster.sandbox().now().duration_since(now()).as_secs();
    assert!((40..=61).contains(&waited), "after {waited} s");

    let requests = cluster.requests_of(ACCOUNT);
    let methods: Vec<String> = requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect();
    assert_eq!(
        methods,
        [
            "GET /api/v1/nodes/gone",
            "PATCH /api/v1/namespaces/shop/pods/orphan/status",
            "DELETE /api/v1/namespaces/shop/pods/orphan",
        ]
    );
    let bodies: Vec<Value> = requests[1..].iter().map(|request| serde_json::from_str(&request.body).unwrap()).collect();
    let uid = &bodies[0]["metadata"]["uid"];
    assert!(uid.is_string());
    assert_eq!(bodies[0]["status"]["conditions"][0]["reason"], "DeletionByPodGC");
    assert_eq!(
        bodies[1],
        json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "preconditions": { "uid": uid },
        })
    );
    assert_eq!(requests[1].headers["content-type"], "application/strategic-merge-patch+json");
    assert!(counted(&cluster, "force_delete_pods_total", "orphaned"), "{}", cluster.metrics());
    assert!(!cluster.metrics().contains("force_delete_pod_errors_total{"));
}

#[tokio::test(start_paused = true)]
async fn the_status_that_an_orphan_ends_with_is_seen_by_its_owner() {
    let cluster = start(environment(&[DESCRIPTOR]).prepare(|sandbox| {
        let held =
            pod("held").node("gone").with("/metadata", "finalizers", json!(["batch.kubernetes.io/job-tracking"]));
        create(sandbox, &held.with("/status", "conditions", json!([{ "type": "Ready", "status": "True" }])));
    }))
    .await;
    let held = |sandbox: &Sandbox| sandbox.get(&PODS, &key("held")).expect("a finalizer holds it");
    cluster.eventually("it is terminating", |sandbox| held(sandbox)["metadata"]["deletionTimestamp"].is_string()).await;
    let status = held(cluster.sandbox())["status"].clone();
    assert_eq!(status["phase"], "Failed");
    let types: Vec<&Value> =
        status["conditions"].as_array().unwrap().iter().map(|condition| &condition["type"]).collect();
    assert!(types.contains(&&json!("Ready")) && types.contains(&&json!("DisruptionTarget")), "{status}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_the_cache_does_not_show_keeps_its_pods() {
    let cluster = start(with_orphan()).await;
    cluster.sandbox().faults().hold_watches(&NODES);
    create_node(cluster.sandbox(), node("gone", true, &[]));
    cluster.advance(300 * SECOND).await;
    assert_eq!(names(cluster.sandbox()), ["kept", "orphan"]);
    assert!(cluster.requests_of(ACCOUNT).len() >= 4, "it is looked up again every forty seconds");
    assert!(writes(&cluster).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_read_keeps_its_pods_until_it_can() {
    let cluster = start(with_orphan()).await;
    let refused = Fault::on(Verb::Get).resource(NODES).fail(Status::forbidden(&NODES, "gone", "no"));
    let refused = cluster.sandbox().faults().inject(refused);
    cluster.advance(120 * SECOND).await;
    assert_eq!(names(cluster.sandbox()), ["kept", "orphan"]);
    refused.remove();
    cluster.eventually("the orphan is gone", |sandbox| names(sandbox) == ["kept"]).await;
}

#[tokio::test(start_paused = true)]
async fn the_other_kinds_of_pods_are_deleted_in_the_first_round() {
    let cluster =
        start(environment(&[DESCRIPTOR]).arguments(&["--terminated-pod-gc-threshold=1"]).prepare(|sandbox| {
            create_node(sandbox, node("node", true, &[]));
            create_node(sandbox, node("dead", false, &["node.kubernetes.io/out-of-service"]));
            for name in ["old", "young"] {
                create(sandbox, &pod(name).node("node").phase("Succeeded"));
            }
            create(sandbox, &pod("stuck").node("dead"));
            let held = json!(["example.com/hold"]);
            create(sandbox, &pod("unscheduled").unassigned().phase("Pending").with("/metadata", "finalizers", held));
            for name in ["stuck", "unscheduled"] {
                sandbox.delete(&PODS, &key(name)).expect("it is there");
            }
        }))
        .await;
    cluster.eventually("three are deleted", |sandbox| names(sandbox) == ["unscheduled", "young"]).await;
    let mut found = writes(&cluster);
    found.sort_unstable();
    assert_eq!(
        found,
        ["DELETE old", "DELETE stuck", "DELETE unscheduled", "PATCH stuck/status", "PATCH unscheduled/status"]
    );
    for reason in ["terminated", "out-of-service", "unscheduled"] {
        assert!(counted(&cluster, "force_delete_pods_total", reason), "{reason}: {}", cluster.metrics());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_recreated_behind_the_cache_is_left_alone() {
    let cluster = start(with_orphan()).await;
    cluster.sandbox().faults().hold_watches(&PODS);
    cluster.sandbox().delete_now(&PODS, &key("orphan")).unwrap();
    create(cluster.sandbox(), &pod("orphan").node("node"));
    cluster.advance(120 * SECOND).await;
    assert_eq!(names(cluster.sandbox()), ["kept", "orphan"]);
    let orphan = cluster.sandbox().get(&PODS, &key("orphan")).unwrap();
    assert_eq!((&orphan["status"]["phase"], orphan["metadata"].get("deletionTimestamp")), (&json!("Running"), None));
    assert!(!cluster.metrics().contains("force_delete_pod_errors_total{"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_deleted_is_counted_and_tried_again_and_holds_up_no_other() {
    let cluster = start(with_orphan()).await;
    create(cluster.sandbox(), &pod("second").node("gone"));
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    let fault = Fault::on(Verb::Patch).resource(PODS).name("orphan").times(1).fail(refused);
    cluster.sandbox().faults().inject(fault);
    cluster.eventually("the other one is gone", |sandbox| names(sandbox) == ["kept", "orphan"]).await;
    assert_eq!(
        writes(&cluster).iter().filter(|write| *write == "DELETE orphan").count(),
        0,
        "not before it has failed"
    );
    assert!(counted(&cluster, "force_delete_pod_errors_total", "orphaned"), "{}", cluster.metrics());
    cluster.eventually("the orphan is gone", |sandbox| names(sandbox) == ["kept"]).await;
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || with_orphan().prepare(|sandbox| create(sandbox, &pod("second").node("gone"))),
        async |cluster| {
            cluster.eventually("the orphans are gone", |sandbox| names(sandbox) == ["kept"]).await;
            cluster.settle().await;
        },
    )
    .await;
    assert_eq!(writes, 4);
}

#[tokio::test(start_paused = true)]
async fn lost_responses_late_watches_and_a_busy_server_change_nothing() {
    for number in 0..2 {
        let cluster = start(with_orphan()).await;
        cluster.sandbox().faults().inject(Fault::on_writes().skip(number).times(1).lose_answer());
        cluster.eventually("the orphan is gone", |sandbox| names(sandbox) == ["kept"]).await;
        cluster.advance(120 * SECOND).await;
        assert_eq!(names(cluster.sandbox()), ["kept"]);
    }
    let cluster = start(with_orphan().allow_error("Loop is stalled")).await;
    cluster.sandbox().faults().delay_events(&PODS, 180 * SECOND);
    cluster.eventually("the orphan is gone", |sandbox| names(sandbox) == ["kept"]).await;
    cluster.advance(600 * SECOND).await;
    assert_eq!(
        writes(&cluster),
        ["PATCH orphan/status", "DELETE orphan"],
        "no round begins before its writes are seen"
    );

    let cluster = start(with_orphan()).await;
    let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(20).fail(Status::too_many_requests(1));
    cluster.sandbox().faults().inject(busy);
    cluster.eventually("the orphan is gone", |sandbox| names(sandbox) == ["kept"]).await;
    assert!(cluster.sandbox().get(&NODES, &ObjectKey::cluster_scoped("node")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_decoded_exists_and_costs_no_request() {
    let cluster = start(environment(&[DESCRIPTOR]).prepare(|sandbox| {
        create_node(sandbox, node("node", true, &[]));
        create(sandbox, &pod("kept").node("node"));
    }))
    .await;
    let key = ObjectKey::cluster_scoped("node");
    let direct = |conditions: Value| {
        let status = json!({ "status": { "conditions": conditions } });
        DirectClient::new(cluster.sandbox()).merge(&NODES, &key, Some("status"), &status).unwrap();
    };
    direct(json!("many"));
    cluster.advance(300 * SECOND).await;
    assert_eq!(names(cluster.sandbox()), ["kept"]);
    assert!(cluster.requests_of(ACCOUNT).is_empty(), "{:?}", cluster.requests_of(ACCOUNT));
    // If it is deleted in this state, its quarantine begins.
    cluster.sandbox().delete_now(&NODES, &key).unwrap();
    cluster.eventually("its pod is gone", |sandbox| names(sandbox).is_empty()).await;
    assert_eq!(cluster.take_errors().len(), 1, "the node is logged once");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_slow_to_read_delays_no_terminated_pod() {
    let cluster =
        start(with_orphan().arguments(&["--terminated-pod-gc-threshold=1"]).allow_error("Loop is stalled")).await;
    let slow = cluster.sandbox().faults().inject(Fault::on(Verb::Get).resource(NODES).stall());
    cluster.advance(20 * SECOND).await;
    for name in ["old", "young"] {
        create(cluster.sandbox(), &pod(name).node("node").phase("Succeeded"));
    }
    cluster.eventually("the node is looked up", |_| slow.hits() > 0).await;
    cluster.settle().await;
    assert_eq!(names(cluster.sandbox()), ["kept", "orphan", "young"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_created_during_its_quarantine_keeps_its_pods() {
    let cluster = start(with_orphan()).await;
    cluster.advance(30 * SECOND).await;
    create_node(cluster.sandbox(), node("gone", true, &[]));
    cluster.advance(300 * SECOND).await;
    assert_eq!(names(cluster.sandbox()), ["kept", "orphan"]);
    assert!(cluster.requests_of(ACCOUNT).is_empty(), "{:?}", cluster.requests_of(ACCOUNT));
}

/// The cache shows the node until the watch is released: no quarantine begins before.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_deleted_behind_the_cache_keeps_its_pods_for_its_quarantine() {
    let cluster = start(environment(&[DESCRIPTOR]).prepare(|sandbox| {
        create_node(sandbox, node("node", true, &[]));
        create(sandbox, &pod("orphan").node("node"));
    }))
    .await;
    cluster.sandbox().faults().hold_watches(&NODES);
    cluster.sandbox().delete_now(&NODES, &ObjectKey::cluster_scoped("node")).unwrap();
    cluster.advance(120 * SECOND).await;
    assert!(cluster.requests_of(ACCOUNT).is_empty(), "the cache has it");
    cluster.sandbox().faults().release_watches(&NODES);
    cluster.advance(39 * SECOND).await;
    assert!(cluster.requests_of(ACCOUNT).is_empty(), "{:?}", cluster.requests_of(ACCOUNT));
    cluster.eventually("it is gone", |sandbox| names(sandbox).is_empty()).await;
}
