//! The node lifecycle controller and the taint eviction controller together.

use std::ops::Range;

use kcm_framework::ControllerDescriptor;
use kcm_testing::sandbox::{PODS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::json;

use super::apply::{SECOND, create, create_pod_with, environment_of, node_status, pass, pod_key, renew, start, taints};
use crate::{node_lifecycle, taint_eviction};

const BOTH: [ControllerDescriptor; 2] = [node_lifecycle::DESCRIPTOR, taint_eviction::DESCRIPTOR];

/// The Pod `p` on the Node `dead` tolerates that it is unreachable for five minutes.
fn environment() -> TestEnvironment {
    environment_of(BOTH).prepare(|sandbox| {
        let unreachable = "node.kubernetes.io/unreachable";
        let toleration = json!({
            "key": unreachable, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
        });
        create_pod_with(sandbox, "p", "dead", &json!([toleration]));
    })
}

fn is_evicted(sandbox: &Sandbox) -> bool {
    sandbox.get(&PODS, &pod_key("p")).is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
}

/// Lets the time pass until the Pod is evicted, and asserts after how many seconds since the start.
async fn evicted_within(cluster: &TestCluster, seconds: Range<u64>) {
    while !is_evicted(cluster.sandbox()) && cluster.elapsed().as_secs() < seconds.end {
        pass(cluster, 5).await;
    }
    let waited = cluster.elapsed().as_secs();
    assert!(seconds.contains(&waited) && is_evicted(cluster.sandbox()), "after {waited} s");
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_dead_node_are_evicted_after_the_times_of_the_page() {
    let cluster = start(environment()).await;
    evicted_within(&cluster, 350..365).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_defers_no_eviction() {
    let cluster = start(environment()).await;
    pass(&cluster, 200).await;
    cluster.kill();
    evicted_within(&cluster, 350..365).await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_control_plane_evicts_no_pod_of_a_healthy_node() {
    let cluster = start(environment().allow_error("API server")).await;
    for _ in 0..6 {
        pass(&cluster, 5).await;
        renew(cluster.sandbox(), "dead");
    }
    cluster.sandbox().faults().stop_api_server();
    cluster.advance(900 * SECOND).await;
    cluster.sandbox().faults().end_outage();
    cluster.advance(30 * SECOND).await;
    for _ in 0..120 {
        renew(cluster.sandbox(), "dead");
        pass(&cluster, 5).await;
    }
    assert_eq!(node_status(&cluster, "dead"), "True");
    assert!(taints(&cluster, "dead").is_empty() && !is_evicted(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_returns_during_the_tolerated_time_keeps_its_pods() {
    let cluster = start(environment()).await;
    pass(&cluster, 100).await;
    assert_eq!(taints(&cluster, "dead").len(), 2);
    let ready = json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": cluster.sandbox().now() });
    let status = json!({ "status": { "conditions": [ready] } });
    let nodes = kcm_testing::sandbox::NODES;
    cluster.sandbox().patch_status(&nodes, &crate::tests::key("dead"), &status).unwrap();
    for _ in 0..80 {
        renew(cluster.sandbox(), "dead");
        pass(&cluster, 5).await;
    }
    assert!(!is_evicted(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn both_end_the_same_whatever_write_they_are_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        pass(cluster, 450).await;
        assert!(is_evicted(cluster.sandbox()));
    })
    .await;
    assert!(writes >= 5, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_fails_beside_a_healthy_one_is_tainted_at_the_rate() {
    let cluster = start(environment_of(BOTH).prepare(|sandbox| {
        for number in 0..4 {
            create(sandbox, &format!("b{number}"), "b");
        }
    }))
    .await;
    pass(&cluster, 60).await;
    let tainted =
        |cluster: &TestCluster| (0..4).filter(|number| taints(cluster, &format!("b{number}")).len() == 2).count();
    assert_eq!(tainted(&cluster), 1);
    pass(&cluster, 30).await;
    assert_eq!(tainted(&cluster), 4);
}
