//! Annotations of Nodes on an API server in the process.

use std::time::Duration;

use kcm_testing::sandbox::{NODES, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write, passing_faults};
use serde_json::{Value, json};

use crate::tests::{create_node, key};
use crate::ttl::{DESCRIPTOR, TTL};

const NAME: &str = "ttl-controller";

fn environment(nodes: usize) -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).prepare(move |sandbox| add(sandbox, 0..nodes))
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[NODES]).await;
    cluster
}

fn add(sandbox: &Sandbox, numbers: std::ops::Range<usize>) {
    for number in numbers {
        create_node(sandbox, &json!({ "metadata": { "name": format!("n{number}") } }));
    }
}

fn remove(sandbox: &Sandbox, numbers: std::ops::Range<usize>) {
    for number in numbers {
        sandbox.delete_now(&NODES, &key(&format!("n{number}"))).expect("the node must exist");
    }
}

fn annotate(sandbox: &Sandbox, name: &str, ttl: &Value) {
    let patch = json!({ "metadata": { "annotations": { TTL: ttl } } });
    sandbox.patch(&NODES, &key(name), &patch).expect("the node must exist");
}

/// Returns `true` if every Node has the annotation.
fn all_have(sandbox: &Sandbox, ttl: &str) -> bool {
    sandbox.list(&NODES, None).iter().all(|node| node["metadata"]["annotations"][TTL] == ttl)
}

async fn all_get(cluster: &TestCluster, ttl: &str) {
    cluster.eventually(&format!("all nodes have {ttl}"), |sandbox| all_have(sandbox, ttl)).await;
}

#[tokio::test(start_paused = true)]
async fn all_nodes_follow_the_size_of_the_cluster_without_an_update() {
    let cluster = start(environment(100)).await;
    all_get(&cluster, "0").await;
    add(cluster.sandbox(), 100..101);
    all_get(&cluster, "15").await;
    remove(cluster.sandbox(), 90..101);
    cluster.settle().await;
    assert!(all_have(cluster.sandbox(), "15"));
    remove(cluster.sandbox(), 89..90);
    all_get(&cluster, "0").await;
}

#[tokio::test(start_paused = true)]
async fn a_patch_is_one_annotation_with_the_uid_and_nothing_else_is_requested() {
    let cluster = start(environment(1)).await;
    all_get(&cluster, "0").await;
    let uid = cluster.sandbox().get(&NODES, &key("n0")).unwrap()["metadata"]["uid"].clone();
    let requests = cluster.requests_of(NAME);
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!((&*requests[0].method, &*requests[0].path), ("PATCH", "/api/v1/nodes/n0"));
    let expected = json!({ "metadata": { "annotations": { TTL: "0" }, "uid": uid } });
    assert_eq!(cluster.bodies_of(NAME, "PATCH"), [expected]);
}

#[tokio::test(start_paused = true)]
async fn foreign_changes_are_repaired_and_equal_numbers_are_left() {
    let cluster = start(environment(1)).await;
    all_get(&cluster, "0").await;
    for foreign in [json!("7"), json!("soon"), Value::Null] {
        annotate(cluster.sandbox(), "n0", &foreign);
        all_get(&cluster, "0").await;
    }
    cluster.settle().await;
    let written = cluster.writes_of(NAME).len();
    annotate(cluster.sandbox(), "n0", &json!("+00"));
    cluster.settle().await;
    assert_eq!(cluster.writes_of(NAME).len(), written);
}

#[tokio::test(start_paused = true)]
async fn a_takeover_within_an_overlap_writes_nothing() {
    let cluster = start(environment(95).prepare(|sandbox| {
        for number in 0..95 {
            annotate(sandbox, &format!("n{number}"), &json!("15"));
        }
    }))
    .await;
    cluster.advance(Duration::from_mins(20)).await;
    assert_eq!(cluster.writes_of(NAME).len(), 0);
    cluster.kill();
    cluster.advance(Duration::from_mins(20)).await;
    assert_eq!(cluster.writes_of(NAME).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_recreated_behind_the_cache_gets_its_own_patch() {
    let cluster = start(environment(0)).await;
    add(cluster.sandbox(), 0..1);
    cluster.sandbox().faults().hold_watches(&NODES);
    remove(cluster.sandbox(), 0..1);
    add(cluster.sandbox(), 0..1);
    cluster.settle().await;
    cluster.sandbox().faults().release_watches(&NODES);
    all_get(&cluster, "0").await;
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || environment(3),
        async |cluster| {
            all_get(cluster, "0").await;
            annotate(cluster.sandbox(), "n1", &json!("9"));
            all_get(cluster, "0").await;
            cluster.settle().await;
        },
    )
    .await;
    assert_eq!(writes, 4);
}

#[tokio::test(start_paused = true)]
async fn lost_responses_refusals_and_late_watches_change_nothing() {
    for fault in passing_faults() {
        let cluster = start(environment(3).prepare(move |sandbox| {
            sandbox.faults().inject(fault);
            sandbox.faults().delay_events(&NODES, Duration::from_secs(30));
        }))
        .await;
        all_get(&cluster, "0").await;
        cluster.advance(Duration::from_mins(2)).await;
        assert!(all_have(cluster.sandbox(), "0"));
    }
}
