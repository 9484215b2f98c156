//! Evictions on an API server in the process.

use std::time::Duration;

use jiff::SignedDuration;
use kcm_framework::api::ObjectKey;
use kcm_testing::sandbox::{Fault, NODES, PODS, Sandbox, Status, Verb};
use kcm_testing::{START, TestCluster, TestEnvironment, kill_after_each_write, passing_faults};
use serde_json::{Value, json};

use crate::shared::MONITOR_GRACE_PERIOD;
use crate::taint_eviction::DESCRIPTOR;
use crate::tests::{create_node, fits_role_of_node_controller, key};

const COMPONENT: &str = "taint-eviction-controller";
/// The name of its client.
const IDENTITY: &str = "node-controller";
const SECOND: Duration = Duration::from_secs(1);
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

pub(super) fn pod_key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

pub(super) fn create_pod(sandbox: &Sandbox, name: &str, node: &str, tolerations: &Value) {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "namespace": "shop", "name": name },
        "spec": {
            "nodeName": node, "tolerations": tolerations,
            "containers": [{ "name": "main", "image": "image" }],
        },
    });
    sandbox.create(&PODS, pod).expect("the pod must be valid");
}

pub(super) fn tolerates(key: &str, seconds: i64) -> Value {
    json!([{ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds }])
}

pub(super) fn taint(sandbox: &Sandbox, node: &str, taints: &Value) {
    sandbox.patch(&NODES, &key(node), &json!({ "spec": { "taints": taints } })).expect("the node must exist");
}

fn of_user() -> Value {
    json!([{ "key": "a", "effect": "NoExecute" }])
}

/// The taint of an unreachable Node that was added so many seconds before the start.
fn unreachable(seconds_before: i64) -> Value {
    let added = START - SignedDuration::from_secs(seconds_before);
    json!([{ "key": UNREACHABLE, "effect": "NoExecute", "timeAdded": added }])
}

/// Two Nodes without taints.
fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).settings_of_others(&[MONITOR_GRACE_PERIOD.row()]).namespace("shop").prepare(
        |sandbox| {
            for name in ["n1", "n2"] {
                create_node(sandbox, &json!({ "metadata": { "name": name } }));
            }
        },
    )
}

/// A Node that was unreachable before the start, with a Pod that tolerates it for five minutes.
fn unreachable_for(seconds_before: i64) -> TestEnvironment {
    environment().prepare(move |sandbox| {
        create_pod(sandbox, "a", "n1", &tolerates(UNREACHABLE, 300));
        taint(sandbox, "n1", &unreachable(seconds_before));
    })
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[NODES, PODS]).await;
    cluster.settle().await;
    cluster
}

fn is_evicted(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.get(&PODS, &pod_key(name)).is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
}

async fn evicted(cluster: &TestCluster, name: &str) {
    cluster.eventually(&format!("{name} is evicted"), |sandbox| is_evicted(sandbox, name)).await;
}

/// Waits for the eviction, and asserts when it happens.
async fn evicted_after(cluster: &TestCluster, seconds: std::ops::Range<i64>) {
    let before = cluster.sandbox().now();
    evicted(cluster, "a").await;
    let waited = cluster.sandbox().now().duration_since(before).as_secs();
    assert!(seconds.contains(&waited), "after {waited} s");
}

/// Methods and paths of the requests.
fn requests(cluster: &TestCluster) -> Vec<String> {
    cluster.requests_of(IDENTITY).iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_taint_evicts_pods_that_do_not_tolerate_it_with_condition_and_uid() {
    let cluster = start(environment()).await;
    create_pod(cluster.sandbox(), "a", "n1", &json!([]));
    create_pod(cluster.sandbox(), "b", "n2", &json!([]));
    create_pod(cluster.sandbox(), "c", "n1", &json!([{ "operator": "Exists" }]));
    cluster.settle().await;
    assert!(requests(&cluster).is_empty());
    taint(cluster.sandbox(), "n1", &of_user());
    evicted(&cluster, "a").await;
    cluster.advance(60 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "b") && !is_evicted(cluster.sandbox(), "c"));
    let pod = "/api/v1/namespaces/shop/pods/a";
    let expected = ["GET /api/v1/nodes/n1".to_owned(), format!("PATCH {pod}/status"), format!("DELETE {pod}")];
    assert_eq!(requests(&cluster), expected);
    let stored = cluster.sandbox().get(&PODS, &pod_key("a")).unwrap();
    let conditions = stored["status"]["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget").unwrap();
    assert_eq!(condition["reason"], "DeletionByTaintManager");
    assert_eq!(condition["message"], "Taint manager: deleting due to NoExecute taint");
    let deletion = &cluster.bodies_of(IDENTITY, "DELETE")[0];
    assert_eq!(deletion["preconditions"], json!({ "uid": stored["metadata"]["uid"] }));
    assert_eq!(deletion["gracePeriodSeconds"], Value::Null);
    fits_role_of_node_controller(&cluster);
    let events = cluster.events_of(COMPONENT);
    assert_eq!(events, ["Normal TaintManagerEviction Marking for deletion Pod shop/a"]);
    let metrics = cluster.metrics();
    for line in [
        "taint_eviction_controller_pod_deletions_total 1",
        "taint_eviction_controller_pod_deletion_duration_seconds_count 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_to_a_tainted_node_is_evicted_after_its_time() {
    let cluster = start(environment()).await;
    taint(cluster.sandbox(), "n1", &of_user());
    cluster.settle().await;
    create_pod(cluster.sandbox(), "a", "n1", &tolerates("a", 60));
    evicted_after(&cluster, 60..62).await;
}

#[tokio::test(start_paused = true)]
async fn s49_a_removed_taint_and_a_longer_toleration_keep_the_pod() {
    let cluster = start(environment()).await;
    create_pod(cluster.sandbox(), "a", "n1", &tolerates("a", 60));
    taint(cluster.sandbox(), "n1", &of_user());
    cluster.advance(30 * SECOND).await;
    taint(cluster.sandbox(), "n1", &json!(null));
    cluster.advance(60 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "a"));
    let events = cluster.events_of(COMPONENT);
    assert_eq!(events, ["Normal TaintManagerEviction Cancelling deletion of Pod shop/a"]);
    taint(cluster.sandbox(), "n1", &of_user());
    evicted_after(&cluster, 60..62).await;
}

#[tokio::test(start_paused = true)]
async fn t26_a_pod_that_is_recreated_on_a_healthy_node_is_not_evicted_by_the_old_timer() {
    let cluster = start(environment()).await;
    create_pod(cluster.sandbox(), "a", "n1", &tolerates("a", 60));
    taint(cluster.sandbox(), "n1", &of_user());
    cluster.advance(30 * SECOND).await;
    cluster.sandbox().delete_now(&PODS, &pod_key("a")).unwrap();
    create_pod(cluster.sandbox(), "a", "n2", &tolerates("a", 60));
    cluster.advance(300 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "a"));
}

#[tokio::test(start_paused = true)]
async fn t27_a_pod_that_is_recreated_on_the_tainted_node_is_evicted_again() {
    let cluster = start(environment()).await;
    taint(cluster.sandbox(), "n1", &of_user());
    for _ in 0..2 {
        create_pod(cluster.sandbox(), "a", "n1", &json!([]));
        evicted(&cluster, "a").await;
        cluster.sandbox().delete_now(&PODS, &pod_key("a")).ok();
    }
    assert_eq!(cluster.bodies_of(IDENTITY, "DELETE").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_recreated_behind_the_cache_is_kept() {
    let cluster = start(environment()).await;
    create_pod(cluster.sandbox(), "a", "n1", &tolerates("a", 30));
    taint(cluster.sandbox(), "n1", &of_user());
    cluster.advance(20 * SECOND).await;
    cluster.sandbox().faults().hold_watches(&PODS);
    cluster.sandbox().delete_now(&PODS, &pod_key("a")).unwrap();
    create_pod(cluster.sandbox(), "a", "n2", &tolerates("a", 30));
    cluster.advance(30 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "a"));
    cluster.sandbox().faults().release_watches(&PODS);
    cluster.advance(60 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "a"));
}

#[tokio::test(start_paused = true)]
async fn b14_a_taint_that_was_removed_behind_the_cache_evicts_nothing() {
    let cluster = start(environment()).await;
    create_pod(cluster.sandbox(), "a", "n1", &tolerates("a", 30));
    taint(cluster.sandbox(), "n1", &of_user());
    cluster.advance(20 * SECOND).await;
    cluster.sandbox().faults().hold_watches(&NODES);
    taint(cluster.sandbox(), "n1", &json!(null));
    cluster.advance(30 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "a"));
    assert_eq!(requests(&cluster), ["GET /api/v1/nodes/n1"]);
    cluster.sandbox().faults().release_watches(&NODES);
}

#[tokio::test(start_paused = true)]
async fn b12_a_restart_continues_the_time_of_an_unreachable_node() {
    let cluster = start(unreachable_for(0)).await;
    cluster.advance(200 * SECOND).await;
    cluster.kill();
    // The Pod is as old as the taint: a hundred seconds remain.
    evicted_after(&cluster, 95..105).await;
}

#[tokio::test(start_paused = true)]
async fn b12_a_taint_of_a_user_begins_again_after_a_restart() {
    let cluster = start(environment()).await;
    create_pod(cluster.sandbox(), "a", "n1", &tolerates("a", 300));
    taint(cluster.sandbox(), "n1", &of_user());
    cluster.advance(200 * SECOND).await;
    cluster.kill();
    evicted_after(&cluster, 295..305).await;
}

#[tokio::test(start_paused = true)]
async fn b13_an_overdue_pod_waits_for_the_grace_period_after_a_start() {
    let cluster = start(unreachable_for(0)).await;
    cluster.advance(290 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "a"));
    cluster.kill();
    // Ten seconds remain, but the grace period is 50.
    evicted_after(&cluster, 48..55).await;
}

#[tokio::test(start_paused = true)]
async fn b13_an_overdue_pod_waits_for_the_grace_period_after_an_outage() {
    let cluster = start(unreachable_for(0).allow_error("API server")).await;
    cluster.advance(250 * SECOND).await;
    cluster.sandbox().faults().stop_api_server();
    cluster.advance(120 * SECOND).await;
    cluster.sandbox().faults().end_outage();
    evicted_after(&cluster, 48..70).await;
}

#[tokio::test(start_paused = true)]
async fn jumps_of_the_clock_move_no_eviction() {
    let cluster = start(environment()).await;
    create_pod(cluster.sandbox(), "a", "n1", &tolerates("a", 60));
    taint(cluster.sandbox(), "n1", &of_user());
    cluster.advance(10 * SECOND).await;
    cluster.set_clock(SignedDuration::from_hours(5));
    cluster.advance(10 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "a"));
    cluster.set_clock(SignedDuration::from_hours(-10));
    evicted_after(&cluster, 38..42).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_node_cancels_its_evictions() {
    let cluster = start(environment()).await;
    create_pod(cluster.sandbox(), "a", "n1", &tolerates("a", 60));
    taint(cluster.sandbox(), "n1", &of_user());
    cluster.advance(10 * SECOND).await;
    cluster.sandbox().delete_now(&NODES, &key("n1")).unwrap();
    cluster.advance(120 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "a"));
}

#[tokio::test(start_paused = true)]
async fn b15_an_eviction_that_a_webhook_denies_is_retried_until_it_succeeds() {
    let cluster = start(environment()).await;
    let denied = Status::new(403, "Forbidden", "admission webhook \"keeper\" denied the request: not yet");
    cluster.sandbox().faults().inject(Fault::on(Verb::Delete).resource(PODS).times(8).fail(denied));
    create_pod(cluster.sandbox(), "a", "n1", &json!([]));
    taint(cluster.sandbox(), "n1", &of_user());
    cluster.eventually("the denials are over", |_| cluster.bodies_of(IDENTITY, "DELETE").len() > 8).await;
    evicted(&cluster, "a").await;
    assert_eq!(cluster.events_of(COMPONENT).len(), 1);
    assert_eq!(cluster.bodies_of(IDENTITY, "PATCH").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_node_share_one_live_read() {
    let cluster = start(environment()).await;
    for number in 0..40 {
        create_pod(cluster.sandbox(), &format!("p{number}"), "n1", &json!([]));
    }
    cluster.settle().await;
    taint(cluster.sandbox(), "n1", &of_user());
    let all = |sandbox: &Sandbox| (0..40).all(|number| is_evicted(sandbox, &format!("p{number}")));
    cluster.eventually("all are evicted", all).await;
    let reads = requests(&cluster).iter().filter(|request| request.starts_with("GET")).count();
    assert!(reads <= 5, "{reads} reads");
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let pods = || {
        environment().prepare(|sandbox| {
            create_pod(sandbox, "a", "n1", &json!([]));
            create_pod(sandbox, "b", "n1", &tolerates("a", 30));
            taint(sandbox, "n1", &of_user());
        })
    };
    let writes = kill_after_each_write(pods, async |cluster| {
        evicted(cluster, "a").await;
        evicted(cluster, "b").await;
        cluster.settle().await;
    })
    .await;
    assert_eq!(writes, 4);
}

#[tokio::test(start_paused = true)]
async fn lost_responses_refusals_and_late_watches_change_nothing() {
    for fault in passing_faults() {
        let environment = environment().allow_error("Server rejected event");
        let cluster = start(environment.prepare(move |sandbox| {
            sandbox.faults().inject(fault);
            sandbox.faults().delay_events(&PODS, 30 * SECOND);
            create_pod(sandbox, "a", "n1", &json!([]));
            taint(sandbox, "n1", &of_user());
        }))
        .await;
        evicted(&cluster, "a").await;
        cluster.advance(120 * SECOND).await;
    }
}
