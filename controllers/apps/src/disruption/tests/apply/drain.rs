//! A drain: evictions never exceed a budget, whatever happens to the manager.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use kcm_framework::api::ObjectKey;
use kcm_testing::sandbox::direct::{DirectClient, EventKind};
use kcm_testing::sandbox::{Fault, PODS, REPLICA_SETS, Sandbox};
use kcm_testing::{TestCluster, kill_after_each_write};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{BUDGETS, create_budget, evict, has, numbers, set_of, status};
use crate::disruption::DESCRIPTOR;
use crate::replicaset;
use crate::tests::cluster::{NAMESPACE, as_sent, environment, key, now};

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

/// The least number of ready pods after any change of a pod since a resource version at which those were ready.
fn least_healthy(sandbox: &Sandbox, version: u64, first: &[String]) -> usize {
    let mut ready: BTreeSet<ObjectKey> = first.iter().map(|name| key(name)).collect();
    let mut least = ready.len();
    for event in DirectClient::new(sandbox).events_after(version, usize::MAX).expect("the window is long enough") {
        if event.resource == PODS {
            if event.kind != EventKind::Deleted && is_ready(&event.object.value()) {
                ready.insert(event.key.clone());
            } else {
                ready.remove(&event.key);
            }
            least = least.min(ready.len());
        }
    }
    least
}

/// Evicts all of these pods at once, each again and again until that is admitted.
async fn evict_at_once(sandbox: &Sandbox, names: &[String]) {
    let evicted = names.iter().map(async |name| {
        while evict(sandbox, name).is_err_and(|error| error.code == 429) {
            sleep(Duration::from_millis(7)).await;
        }
    });
    let kubelets = async {
        loop {
            run_pods(sandbox);
            sleep(Duration::from_millis(40)).await;
        }
    };
    tokio::select! {
        biased;
        _ = join_all(evicted) => {}
        () = kubelets => {}
    }
}

#[tokio::test(start_paused = true)]
async fn evictions_at_once_never_exceed_a_budget_when_answers_are_lost_and_watches_are_late() {
    const LATE: Duration = Duration::from_secs(3);
    let lost = || Fault::on_writes().times(6).lose_answer();
    for (name, fault, late) in [
        ("no fault", None, &[][..]),
        ("lost answers", Some(lost()), &[]),
        ("late pods", None, &[PODS]),
        ("late budgets", None, &[BUDGETS]),
        ("all of that", Some(lost()), &[PODS, BUDGETS, REPLICA_SETS]),
    ] {
        let cluster = environment(&[DESCRIPTOR, replicaset::DESCRIPTOR]).start().await;
        cluster.watches(&[PODS, BUDGETS, REPLICA_SETS]).await;
        cluster.sandbox().create(&REPLICA_SETS, as_sent(set_of("web", 8).0)).unwrap();
        create_budget(cluster.sandbox(), json!({ "maxUnavailable": 3 }));
        cluster.eventually("there are all pods", |sandbox| names(sandbox).len() == 8).await;
        run_pods(cluster.sandbox());
        has(&cluster, [3, 8, 5, 8]).await;
        let (version, first) = (cluster.sandbox().version(), names(cluster.sandbox()));
        let fault = fault.map(|fault| cluster.sandbox().faults().inject(fault));
        for resource in late {
            cluster.sandbox().faults().delay_events(resource, LATE);
        }
        evict_at_once(cluster.sandbox(), &first).await;
        assert_eq!(least_healthy(cluster.sandbox(), version, &first), 5, "{name}: all of the budget, and no more");
        assert!(fault.is_none_or(|fault| fault.hits() == 6), "{name}");
        cluster
            .eventually("there are all pods again", |sandbox| {
                run_pods(sandbox);
                numbers(&status(sandbox)) == [3, 8, 5, 8]
            })
            .await;
        assert!(names(cluster.sandbox()).iter().all(|name| !first.contains(name)));
        let _errors = cluster.take_errors();
    }
}
