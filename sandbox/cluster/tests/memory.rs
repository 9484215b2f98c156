//! Bytes per stored pod and per event in the window, counted by the allocator.

use std::alloc::System;

use kcm_sandbox_apiserver::{CONFIG_MAPS, ObjectKey, PODS, Sandbox, SandboxOptions};
use kcm_sandbox_cluster::{Cluster, ClusterOptions};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const PODS_MADE: usize = 300;
/// Events in the window for each pod.
const REWRITES: usize = 10;
/// With 10,000 of both, half of the 250 MB that a whole sandbox may take.
const MOST_BYTES_OF_A_POD: usize = 7_500;
const MOST_BYTES_OF_AN_EVENT: usize = 5_000;

fn held(region: &Region<System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

fn key(number: usize) -> ObjectKey {
    ObjectKey::namespaced("default", format!("web-{number}"))
}

/// A sandbox with a cluster in which so many pods run.
async fn running_pods(watch_window: usize, count: usize) -> (Sandbox, Cluster) {
    let sandbox = Sandbox::new(SandboxOptions { watch_window, request_log: 0, ..SandboxOptions::default() });
    let cluster = Cluster::start(&sandbox, ClusterOptions { nodes: 10, events_kept: 0, ..ClusterOptions::default() });
    for number in 0..count {
        let pod = json!({
            "metadata": { "name": key(number).name(), "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
        });
        sandbox.create(&PODS, pod).expect("the pod is valid");
    }
    let runs = |pod: &Value| pod["status"]["phase"] == "Running";
    while !sandbox.list(&PODS, None).iter().all(runs) {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    (sandbox, cluster)
}

/// Returns the memory of a sandbox with `pods` running pods, including its scheduler and kubelets.
async fn held_by(pods: usize) -> usize {
    let region = Region::new(ALLOCATOR);
    let (sandbox, _cluster) = running_pods(1, pods).await;
    // What was written last is held as values too: let that be the same, however many pods there are.
    for _ in 0..256 {
        let map = json!({ "metadata": { "generateName": "m" } });
        sandbox.create(&CONFIG_MAPS, map).expect("the map is valid");
    }
    held(&region)
}

// One test, since the allocator counts for the whole process.
#[tokio::test(start_paused = true)]
async fn ten_thousand_pods_and_the_window_fit() {
    // What is made once for all sandboxes is there before anything is counted.
    held_by(1).await;
    let bytes = (held_by(PODS_MADE).await - held_by(0).await) / PODS_MADE;
    assert!(bytes <= MOST_BYTES_OF_A_POD, "{bytes} bytes per running pod");

    let window = PODS_MADE * (1 + REWRITES);
    let (sandbox, cluster) = running_pods(window, PODS_MADE).await;
    drop(cluster);
    sandbox.compact();
    let rewrite = |round: usize| {
        let labels = json!({ "metadata": { "labels": { "round": round.to_string() } } });
        for number in 0..PODS_MADE {
            sandbox.patch(&PODS, &key(number), &labels).expect("the pod is there");
        }
    };
    // What was written last is held as values too, however many events there are.
    rewrite(0);
    let region = Region::new(ALLOCATOR);
    (1..=REWRITES).for_each(rewrite);
    let bytes = held(&region) / (PODS_MADE * REWRITES);
    assert!(bytes <= MOST_BYTES_OF_AN_EVENT, "{bytes} bytes per event of a pod");
}
