//! What one scrape of a manager with two controllers costs, counted by the allocator.

use std::alloc::System;
use std::time::Duration;

use kcm_controllers_apps::{deployment, replicaset};
use kcm_framework::Format;
use kcm_testing::sandbox::{DEPLOYMENTS, PODS, REPLICA_SETS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NAMESPACE: &str = "shop";

/// The price of one scrape. docs/serving.md states its bounds.
#[derive(Debug)]
struct Cost {
    /// What is returned.
    bytes: usize,
    /// What is allocated on the way, all of which is freed.
    allocations: usize,
    allocated: usize,
}

fn cost(cluster: &TestCluster) -> Cost {
    let region = Region::new(ALLOCATOR);
    let bytes = cluster.scrape(Format::Text).len();
    let change = region.change();
    assert_eq!(change.bytes_allocated, change.bytes_deallocated, "a scrape keeps nothing");
    Cost { bytes, allocations: change.allocations, allocated: change.bytes_allocated }
}

fn create(sandbox: &Sandbox, name: &str) {
    let labels = json!({ "app": name });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "main", "image": "image" }] } },
        },
    });
    sandbox.create(&DEPLOYMENTS, deployment).expect("it can be created");
}

// One test, since the allocator counts for the whole process.
#[tokio::test(start_paused = true)]
async fn a_scrape_costs_the_same_however_many_keys_there_are() {
    let cluster =
        TestEnvironment::new([deployment::DESCRIPTOR, replicaset::DESCRIPTOR]).namespace(NAMESPACE).start().await;
    cluster.watches(&[DEPLOYMENTS, REPLICA_SETS, PODS]).await;
    let rolled_out = async |count: usize| {
        cluster.eventually("all pods to be there", |sandbox| sandbox.list(&PODS, Some(NAMESPACE)).len() == count).await;
        cluster.advance(Duration::from_secs(30)).await;
    };
    create(cluster.sandbox(), "first");
    rolled_out(1).await;
    // The first one fills what later ones reuse.
    drop(cluster.scrape(Format::Text));
    let few = cost(&cluster);
    for number in 1..1_000 {
        create(cluster.sandbox(), &format!("web-{number}"));
    }
    rolled_out(1_000).await;
    let many = cost(&cluster);
    // Values have more digits.
    assert!(many.bytes <= few.bytes + 2_000, "{few:?}, {many:?} after 1,000 deployments");
    assert!(many.allocations <= few.allocations + few.allocations / 20, "{few:?}, {many:?} after 1,000 deployments");
    assert!(many.bytes <= 60_000 && many.allocated <= 1_000_000, "{many:?}");
}
