//! Pod CIDRs of Nodes on an API server in the process.

use std::collections::BTreeSet;
use std::time::Duration;

use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, NODES, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write, passing_faults};
use serde_json::{Value, json};

use crate::node_ipam::DESCRIPTOR;
use crate::node_ipam::settings::{ALLOCATE, CLUSTER_CIDR};
use crate::tests::{create_node, fits_role_of_node_controller, key};

/// The name of its client.
const NAME: &str = "node-controller";
const SECOND: Duration = Duration::from_secs(1);

fn environment(arguments: &[&str]) -> TestEnvironment {
    let environment = TestEnvironment::new([DESCRIPTOR]).settings_of_others(&[ALLOCATE.row(), CLUSTER_CIDR.row()]);
    environment.arguments(&["--allocate-node-cidrs"]).arguments(arguments)
}

/// A cluster with four blocks.
pub(super) fn four() -> TestEnvironment {
    environment(&["--cluster-cidr=10.244.0.0/22"])
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[NODES]).await;
    cluster
}

fn create(sandbox: &Sandbox, name: &str) {
    create_node(sandbox, &json!({ "metadata": { "name": name } }));
}

fn create_with(sandbox: &Sandbox, name: &str, cidr: &str) {
    create_node(sandbox, &json!({ "metadata": { "name": name }, "spec": { "podCIDR": cidr, "podCIDRs": [cidr] } }));
}

fn remove(sandbox: &Sandbox, name: &str) {
    sandbox.delete_now(&NODES, &key(name)).expect("the node must exist");
}

fn cidrs(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.get(&NODES, &key(name)).map(|node| node["spec"]["podCIDRs"].clone()).unwrap_or_default()
}

async fn gets(cluster: &TestCluster, name: &str, cidrs_of_node: &[&str]) {
    let expected = json!(cidrs_of_node);
    cluster.eventually(&format!("{name} gets {expected}"), |sandbox| cidrs(sandbox, name) == expected).await;
}

/// Asserts that every Node has a pod CIDR of its own.
fn all_differ(sandbox: &Sandbox) {
    let nodes = sandbox.list(&NODES, None);
    let given: BTreeSet<String> = nodes.iter().map(|node| node["spec"]["podCIDR"].to_string()).collect();
    assert_eq!(given.len(), nodes.len(), "{given:?}");
    assert!(!given.contains("null"), "{given:?}");
}

async fn all_get_one(cluster: &TestCluster) {
    let all = |sandbox: &Sandbox| sandbox.list(&NODES, None).iter().all(|node| node["spec"]["podCIDR"].is_string());
    cluster.eventually("all nodes have pod CIDRs", all).await;
    all_differ(cluster.sandbox());
}

#[tokio::test(start_paused = true)]
async fn each_node_gets_a_block_of_each_family_with_one_patch() {
    let cluster = start(environment(&["--cluster-cidr=10.244.0.0/16,fd00::/56"])).await;
    create(cluster.sandbox(), "a");
    gets(&cluster, "a", &["10.244.0.0/24", "fd00::/64"]).await;
    create(cluster.sandbox(), "b");
    gets(&cluster, "b", &["10.244.1.0/24", "fd00:0:0:1::/64"]).await;
    cluster.advance(60 * SECOND).await;
    let uid = &cluster.sandbox().get(&NODES, &key("a")).unwrap()["metadata"]["uid"];
    let spec = json!({ "podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24", "fd00::/64"] });
    let bodies = cluster.bodies_of(NAME, "PATCH");
    assert_eq!(bodies[0], json!({ "metadata": { "uid": uid }, "spec": spec }));
    assert_eq!((bodies.len(), cluster.requests_of(NAME).len()), (2, 2), "nothing else is requested");
    fits_role_of_node_controller(&cluster);
    let metrics = cluster.metrics();
    for line in [
        r#"node_ipam_controller_cidrset_cidrs_allocations_total{clusterCIDR="10.244.0.0/16"} 2"#,
        r#"node_ipam_controller_cirdset_max_cidrs{clusterCIDR="fd00::/56"} 256"#,
        r#"node_ipam_controller_cidrset_usage_cidrs{clusterCIDR="10.244.0.0/16"} 0.0078125"#,
        r#"node_ipam_controller_cidrset_allocation_tries_per_request_count{clusterCIDR="10.244.0.0/16"} 2"#,
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_allocation_nothing_is_requested() {
    let rows = [ALLOCATE.row(), CLUSTER_CIDR.row()];
    let cluster = TestEnvironment::new([DESCRIPTOR]).settings_of_others(&rows).start().await;
    create(cluster.sandbox(), "a");
    cluster.advance(60 * SECOND).await;
    assert!(cluster.requests_of(NAME).is_empty());
}

#[tokio::test(start_paused = true)]
async fn nodes_that_have_pod_cidrs_keep_them_over_a_restart() {
    let cluster = start(four().prepare(|sandbox| {
        create_with(sandbox, "a", "10.244.0.0/24");
        create_with(sandbox, "b", "10.244.2.0/24");
    }))
    .await;
    create(cluster.sandbox(), "c");
    gets(&cluster, "c", &["10.244.1.0/24"]).await;
    cluster.kill();
    create(cluster.sandbox(), "d");
    gets(&cluster, "d", &["10.244.3.0/24"]).await;
    cluster.advance(600 * SECOND).await;
    assert_eq!(cluster.writes_of(NAME).len(), 2, "nothing is written at rest");
}

#[tokio::test(start_paused = true)]
async fn s12_b4_a_node_waits_with_an_event_and_gets_the_first_block_that_is_released() {
    let cluster = start(environment(&["--cluster-cidr=10.244.0.0/24"])).await;
    create(cluster.sandbox(), "a");
    gets(&cluster, "a", &["10.244.0.0/24"]).await;
    create(cluster.sandbox(), "b");
    cluster.advance(2000 * SECOND).await;
    assert_eq!(cluster.events_of("cidrAllocator"), ["Normal CIDRNotAvailable Node b status is now: CIDRNotAvailable"]);
    let within_a_second = cluster.elapsed() + SECOND;
    remove(cluster.sandbox(), "a");
    gets(&cluster, "b", &["10.244.0.0/24"]).await;
    assert!(cluster.elapsed() < within_a_second);
}

#[tokio::test(start_paused = true)]
async fn t1_a_patch_that_landed_although_its_response_was_lost_keeps_its_block() {
    let cluster = start(four()).await;
    cluster.sandbox().faults().inject(Fault::on(Verb::Patch).resource(NODES).name("a").lose_answer());
    cluster.sandbox().faults().hold_watches(&NODES);
    cluster.settle().await;
    cluster.sandbox().faults().release_watches(&NODES);
    create(cluster.sandbox(), "a");
    for name in ["b", "c", "d"] {
        create(cluster.sandbox(), name);
    }
    all_get_one(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn s14_a_refused_patch_is_recorded_and_keeps_its_block_for_the_node() {
    let cluster = start(four()).await;
    let denied = Status::new(403, "Forbidden", "admission webhook \"keeper\" denied the request: not yet");
    cluster.sandbox().faults().inject(Fault::on(Verb::Patch).resource(NODES).name("a").times(6).fail(denied));
    create(cluster.sandbox(), "a");
    cluster.settle().await;
    for name in ["b", "c", "d"] {
        create(cluster.sandbox(), name);
    }
    all_get_one(&cluster).await;
    assert_eq!(cidrs(cluster.sandbox(), "a"), json!(["10.244.0.0/24"]));
    let event = "Normal CIDRAssignmentFailed Node a status is now: CIDRAssignmentFailed";
    assert!(cluster.events_of("cidrAllocator").iter().all(|found| found == event));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_another_client_gave_pod_cidrs_behind_the_cache_keeps_them() {
    let cluster = start(four()).await;
    cluster.sandbox().faults().hold_watches(&NODES);
    create(cluster.sandbox(), "a");
    cluster.settle().await;
    let denied = Status::new(422, "Invalid", "node updates may not change podCIDR except from \"\" to valid");
    cluster.sandbox().faults().inject(Fault::on(Verb::Patch).resource(NODES).name("a").times(1).fail(denied));
    let spec = json!({ "spec": { "podCIDR": "10.244.3.0/24", "podCIDRs": ["10.244.3.0/24"] } });
    DirectClient::new(cluster.sandbox()).merge(&NODES, &key("a"), None, &spec).unwrap();
    cluster.sandbox().faults().release_watches(&NODES);
    for name in ["b", "c", "d"] {
        create(cluster.sandbox(), name);
    }
    all_get_one(&cluster).await;
    assert_eq!(cidrs(cluster.sandbox(), "a"), json!(["10.244.3.0/24"]));
}

#[tokio::test(start_paused = true)]
async fn a_node_recreated_behind_the_cache_does_not_get_the_block_of_its_predecessor_twice() {
    let cluster = start(four()).await;
    create(cluster.sandbox(), "a");
    gets(&cluster, "a", &["10.244.0.0/24"]).await;
    cluster.sandbox().faults().hold_watches(&NODES);
    remove(cluster.sandbox(), "a");
    create(cluster.sandbox(), "a");
    cluster.settle().await;
    cluster.sandbox().faults().release_watches(&NODES);
    for name in ["b", "c", "d"] {
        create(cluster.sandbox(), name);
    }
    all_get_one(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn b3_a_node_with_a_foreign_pod_cidr_is_named_and_others_get_theirs() {
    let environment = four().allow_error("pod CIDR outside of --cluster-cidr");
    let cluster = start(environment.prepare(|sandbox| create_with(sandbox, "a", "192.168.0.0/24"))).await;
    create(cluster.sandbox(), "b");
    gets(&cluster, "b", &["10.244.0.0/24"]).await;
    assert_eq!(cidrs(cluster.sandbox(), "a"), json!(["192.168.0.0/24"]));
}

#[tokio::test(start_paused = true)]
async fn settings_that_do_not_fit_are_named_and_stop_no_other_controller() {
    let cluster =
        environment(&["--cluster-cidr=10.244.0.0/26"]).allow_error("choose a greater mask size").start().await;
    cluster.settle().await;
    let problem = cluster.handle().controllers().remove(0).problem().unwrap_or_default();
    assert!(problem.contains("is shorter than the prefix of 10.244.0.0/26"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(four, async |cluster| {
        cluster.watches(&[NODES]).await;
        for name in ["a", "b", "c"] {
            create(cluster.sandbox(), name);
        }
        all_get_one(cluster).await;
        remove(cluster.sandbox(), "b");
        create(cluster.sandbox(), "d");
        create(cluster.sandbox(), "e");
        all_get_one(cluster).await;
        cluster.settle().await;
    })
    .await;
    assert_eq!(writes, 5);
}

#[tokio::test(start_paused = true)]
async fn lost_responses_refusals_and_late_watches_change_nothing() {
    for fault in passing_faults() {
        let cluster = start(four().allow_error("Server rejected event").prepare(move |sandbox| {
            sandbox.faults().inject(fault);
            sandbox.faults().delay_events(&NODES, 30 * SECOND);
            for name in ["a", "b", "c", "d"] {
                create(sandbox, name);
            }
        }))
        .await;
        all_get_one(&cluster).await;
        cluster.advance(120 * SECOND).await;
    }
}
