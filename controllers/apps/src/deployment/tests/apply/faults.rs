//! Lost responses, stale caches and conflicts.

use std::time::Duration;

use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::{DEPLOYMENTS, Fault, PODS, REPLICA_SETS, Status, Verb};
use serde_json::json;

use super::with_image;
use crate::deployment::tests::cluster::Cluster;
use crate::deployment::tests::fixtures::{NAMESPACE, deployment, key};

#[tokio::test(start_paused = true)]
async fn a_creation_whose_response_was_lost_is_retried_and_creates_one() {
    let cluster = Cluster::start_both(|sandbox| {
        sandbox.faults().inject(Fault::on(Verb::Create).resource(REPLICA_SETS).times(2).lose_answer());
    })
    .await;
    cluster.create(&deployment("web").replicas(2));
    cluster.run_until_complete().await;
    cluster.patch(&with_image("image:2"));
    cluster.run_until_complete().await;
    assert_eq!((cluster.sets().len(), cluster.requests("POST").len()), (2, 4), "two were retried");
    assert_eq!(cluster.status().get("collisionCount"), None);
    assert_eq!(cluster.progress(), "NewReplicaSetAvailable");
    assert!(cluster.events().iter().all(|(kind, ..)| kind == "Normal"), "{:?}", cluster.events());
}

#[tokio::test(start_paused = true)]
async fn a_scaling_whose_response_was_lost_is_retried_once() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&deployment("web").replicas(2));
    cluster.eventually("it is created", |_| cluster.status()["observedGeneration"] == 1).await;
    cluster.settle().await;
    let lost = Fault::on(Verb::Update).resource(REPLICA_SETS).times(1).lose_answer();
    cluster.sandbox().faults().inject(lost);
    cluster.sandbox().clear_requests();
    cluster.patch(&json!({ "spec": { "replicas": 5 } }));
    cluster.eventually("the status is written", |_| cluster.status()["observedGeneration"] == 2).await;
    cluster.settle().await;
    let puts = cluster.requests("PUT");
    assert_eq!(puts.iter().filter(|request| request.path.contains("/replicasets/")).count(), 2);
    assert_eq!(cluster.sets()[0]["spec"]["replicas"], 5);
}

#[tokio::test(start_paused = true)]
async fn stale_caches_cause_no_second_replica_set_and_no_second_step() {
    let cluster = Cluster::start_both(|sandbox| {
        sandbox.faults().delay_events(&REPLICA_SETS, Duration::from_secs(2));
        sandbox.faults().delay_events(&DEPLOYMENTS, Duration::from_secs(1));
    })
    .await;
    cluster.create(&deployment("web").replicas(4));
    cluster.run_until_complete().await;
    cluster.patch(&with_image("image:2"));
    cluster.run_until_complete().await;
    assert_eq!(cluster.requests("POST").len(), 2);
    let conflicts = cluster.requests("").into_iter().filter(|request| request.status == Some(409)).count();
    assert_eq!(conflicts, 0, "own writes are read before the next write");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_retried_with_the_live_object() {
    let cluster = Cluster::start(|sandbox| {
        let conflict = Status::conflict(&DEPLOYMENTS, "web", "the object has been modified");
        sandbox.faults().inject(Fault::on(Verb::Update).resource(DEPLOYMENTS).times(1).fail(conflict));
    })
    .await;
    cluster.create(&deployment("web"));
    cluster.eventually("the status is written", |_| cluster.status()["observedGeneration"] == 1).await;
    cluster.settle().await;
    let methods: Vec<_> = cluster.requests("").iter().map(|request| request.method.clone()).collect();
    assert_eq!(methods, ["POST", "PUT", "PUT"]);
    assert_eq!(cluster.progress(), "FoundNewReplicaSet", "the retry does not know who created it");
}

#[tokio::test(start_paused = true)]
async fn a_rollout_costs_no_more_writes_than_steps() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(2).rolling(1, 0));
    cluster.run_until_complete().await;
    cluster.sandbox().clear_requests();
    cluster.patch(&with_image("image:2"));
    cluster.run_until_complete().await;
    let count = |of: &str| cluster.requests("PUT").iter().filter(|request| request.path.contains(of)).count();
    // new 1; old 1, new 2, old 0: the first comes with its creation.
    assert_eq!((cluster.requests("POST").len(), count("/replicasets/")), (1, 3));
    assert!(count("/deployments/") <= 14, "{}", count("/deployments/"));
}

#[tokio::test(start_paused = true)]
async fn a_rollout_with_any_response_lost_stays_within_its_limits_and_completes() {
    for (verb, resource, writes) in
        [(Verb::Create, REPLICA_SETS, 1), (Verb::Update, REPLICA_SETS, 5), (Verb::Update, DEPLOYMENTS, 6)]
    {
        for skipped in 0..writes {
            let cluster = Cluster::start_both(|_| {}).await;
            cluster.create(&deployment("web").replicas(3).rolling(1, 1));
            cluster.run_until_complete().await;
            let lost = Fault::on(verb).resource(resource.clone()).skip(skipped).times(1).lose_answer();
            let lost = cluster.sandbox().faults().inject(lost);
            cluster.patch(&with_image("image:2"));
            cluster
                .run_until("it has rolled", || {
                    let total: i64 = cluster.sizes().iter().map(|(_, size)| size).sum();
                    assert!(total <= 4 && cluster.serving() >= 2, "{:?}, {}", cluster.sizes(), cluster.serving());
                    cluster.sizes() == [("image:1".to_owned(), 0), ("image:2".to_owned(), 3)]
                })
                .await;
            cluster.run_until_complete().await;
            assert_eq!(cluster.sets().len(), 2, "{verb:?} {skipped}");
            assert_eq!(cluster.progress(), "NewReplicaSetAvailable", "{verb:?} {skipped}");
            assert_eq!(lost.hits(), 1, "{verb:?} {skipped}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_update_does_not_delay_the_progress_deadline() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&deployment("web"));
    cluster.eventually("it is reported", |_| cluster.progress() == "NewReplicaSetCreated").await;
    cluster.settle().await;
    let since = cluster.sandbox().now();

    // After a missing permission, the next attempt is a minute away.
    let refused = Status::forbidden(&DEPLOYMENTS, "web", "User \"u\" cannot update resource \"deployments/status\"");
    let refused = Fault::on(Verb::Update).resource(DEPLOYMENTS).times(1).fail(refused);
    let refused = cluster.sandbox().faults().inject(refused);
    cluster.patch(&json!({ "spec": { "progressDeadlineSeconds": 20 } }));
    cluster.eventually("it has failed", |_| cluster.progress() == "ProgressDeadlineExceeded").await;
    let waited = cluster.sandbox().now().duration_since(since).as_secs();
    assert_eq!((refused.hits(), cluster.take_errors().len()), (1, 1));
    assert!((15..=23).contains(&waited), "after {waited} s");
}

#[tokio::test(start_paused = true)]
async fn an_old_replica_set_that_cannot_be_scaled_keeps_the_status_up_to_date() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(2).rolling(1, 0).with("/spec", "progressDeadlineSeconds", json!(60)));
    cluster.run_until_complete().await;
    let old = cluster.sets()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    // A policy denies every update of the old replica set.
    let denied = Status::new(422, "Invalid", "denied by policy");
    let denied = Fault::on(Verb::Update).resource(REPLICA_SETS).name(&old).fail(denied);
    let denied = denied.when(|target| target.subresource.is_none());
    let denied = cluster.sandbox().faults().inject(denied);
    cluster.patch(&with_image("image:2"));
    cluster.run_until("the new replica set is reported", || cluster.status()["updatedReplicas"] == 1).await;
    assert_eq!(cluster.status()["observedGeneration"], cluster.deployment()["metadata"]["generation"]);
    let since = cluster.sandbox().now();
    cluster.run_until("the deadline is reported", || cluster.progress() == "ProgressDeadlineExceeded").await;
    let waited = cluster.sandbox().now().duration_since(since).as_secs();
    assert!((50..=90).contains(&waited), "after {waited} s");
    assert_eq!(cluster.sizes(), [("image:1".to_owned(), 2), ("image:2".to_owned(), 1)]);
    assert!(denied.hits() > 1, "it is retried");
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn a_new_replica_set_that_cannot_be_scaled_ends_the_reconcile() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(1));
    cluster.run_until_complete().await;
    let new = cluster.sets()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let denied = Status::new(422, "Invalid", "denied by policy");
    let denied = Fault::on(Verb::Update).resource(REPLICA_SETS).name(&new).times(3).fail(denied);
    let denied = cluster.sandbox().faults().inject(denied);
    let before = cluster.status();
    cluster.patch(&json!({ "spec": { "replicas": 2 } }));
    cluster.eventually("it was denied", |_| denied.hits() == 1).await;
    assert_eq!(cluster.status(), before, "nothing is reported that did not happen");
    cluster.run_until_complete().await;
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn a_recreation_of_many_pods_reads_nothing_live() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(50).recreate());
    cluster.run_until_complete().await;
    cluster.sandbox().clear_requests();
    cluster.patch(&with_image("image:2"));
    cluster.run_until_complete().await;
    assert_eq!(cluster.sizes(), [("image:1".to_owned(), 0), ("image:2".to_owned(), 50)]);
    assert_eq!(cluster.requests("GET").len(), 0, "{:?}", cluster.requests("GET"));
}

#[tokio::test(start_paused = true)]
async fn a_recreation_waits_for_an_old_pod_that_cannot_be_decoded() {
    let cluster = Cluster::start_with_undecodable().await;
    cluster.create(&deployment("web").replicas(1).with("/spec", "strategy", json!({ "type": "Recreate" })));
    cluster.eventually("it has a replica set", |_| cluster.sets().len() == 1).await;
    let old = cluster.sets().remove(0)["metadata"].clone();
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": old["name"], "uid": old["uid"], "controller": true });
    let pod = json!({
        "metadata": { "namespace": NAMESPACE, "name": "old", "ownerReferences": [owner] },
        "spec": { "containers": [{ "name": "main", "image": "image" }] },
    });
    cluster.sandbox().create(&PODS, pod).unwrap();
    let broken = json!({ "status": { "conditions": [{ "type": 5 }] } });
    DirectClient::new(cluster.sandbox()).merge(&PODS, &key("old"), Some("status"), &broken).unwrap();
    cluster.settle().await;
    // As a terminating pod, it is in no count of the replica set.
    cluster.patch(&with_image("image:2"));
    cluster.eventually("the old one is scaled down", |_| cluster.sets()[0]["spec"]["replicas"] == 0).await;
    cluster.consistently("it waits", Duration::from_mins(5), |_| cluster.sets().len() == 1).await;
    cluster.sandbox().delete_now(&PODS, &key("old")).unwrap();
    cluster.eventually("the new one is created", |_| cluster.sets().len() == 2).await;
}
