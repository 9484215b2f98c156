//! A drain: evictions never exceed a budget, whatever happens to the manager.

use kcm_testing::sandbox::{PODS, REPLICA_SETS, Sandbox};
use kcm_testing::{TestCluster, kill_after_each_write};
use serde_json::{Value, json};

use super::{BUDGETS, create_budget, evict, numbers, set_of, status};
use crate::cluster::{NAMESPACE, as_sent, environment, key, now};
use crate::disruption::DESCRIPTOR;
use crate::replicaset;

const PODS_WANTED: usize = 4;

/// The names of the pods.
fn names(sandbox: &Sandbox) -> Vec<String> {
    let name = |pod: &Value| pod["metadata"]["name"].as_str().expect("pods have names").to_owned();
    sandbox.list(&PODS, Some(NAMESPACE)).iter().map(name).collect()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        && pod["metadata"]["deletionTimestamp"].is_null()
}

/// How many pods are ready.
fn healthy(sandbox: &Sandbox) -> usize {
    sandbox.list(&PODS, Some(NAMESPACE)).iter().filter(|pod| is_ready(pod)).count()
}

/// Does what kubelets do: makes all pods ready.
fn run_pods(sandbox: &Sandbox) {
    for name in names(sandbox) {
        let pod = sandbox.get(&PODS, &key(&name)).expect("it was listed");
        if !is_ready(&pod) {
            sandbox.set_pod_phase(&key(&name), "Running").expect("the pod is there");
            sandbox.set_pod_ready(&key(&name), true, now()).expect("the pod is there");
        }
    }
}

/// Evicts each pod that there was at the beginning, as `kubectl drain` does: again and again until it is admitted.
async fn drain(cluster: &TestCluster, at_least: usize) {
    let first = names(cluster.sandbox());
    assert_eq!(first.len(), PODS_WANTED);
    let mut left = first;
    while !left.is_empty() {
        let before = left.len();
        left.retain(|name| evict(cluster.sandbox(), name).is_err_and(|error| error.code == 429));
        let healthy = healthy(cluster.sandbox());
        assert!(healthy >= at_least, "{healthy} pods are healthy, and {at_least} have to be");
        assert!(before - left.len() <= PODS_WANTED - at_least);
        cluster.settle().await;
        run_pods(cluster.sandbox());
        cluster.settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn evictions_never_exceed_a_budget_whatever_write_the_manager_is_killed_after() {
    let controllers = [DESCRIPTOR, replicaset::DESCRIPTOR];
    let writes = kill_after_each_write(
        || environment(&controllers),
        async |cluster| {
            cluster.watches(&[PODS, BUDGETS, REPLICA_SETS]).await;
            let replicas = i32::try_from(PODS_WANTED).expect("a few");
            cluster.sandbox().create(&REPLICA_SETS, as_sent(set_of("web", replicas).0)).unwrap();
            create_budget(cluster.sandbox(), json!({ "maxUnavailable": 1 }));
            cluster.eventually("there are all pods", |sandbox| names(sandbox).len() == PODS_WANTED).await;
            run_pods(cluster.sandbox());
            let full = |sandbox: &Sandbox| numbers(&status(sandbox)) == [1, 4, 3, 4];
            cluster.eventually("one may be evicted", full).await;
            drain(cluster, PODS_WANTED - 1).await;
            cluster.eventually("one may be evicted again", full).await;
            assert_eq!(names(cluster.sandbox()).len(), PODS_WANTED);
            cluster.settle().await;
        },
    )
    .await;
    assert!(writes > 10, "{writes}");
}
