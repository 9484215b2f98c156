//! Deletion of surplus pods.

use std::collections::BTreeSet;
use std::time::Duration;

use kcm_sandbox_apiserver::{Fault, PODS, REPLICA_SETS, Status, Verb};
use serde_json::{Value, json};

use super::{internal_error, normal, uid, warning};
use crate::replicaset::tests::cluster::Cluster;
use crate::tests::cluster::key;
use crate::tests::fixtures::{create_pod, pod, replica_set};

#[tokio::test(start_paused = true)]
async fn deletes_surplus_pods_by_uid() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(2));
    cluster.eventually("there are two", |_| cluster.pods().len() == 2).await;
    cluster.settle().await;
    let [first, second] = cluster.pod_keys().try_into().unwrap();
    for key in [&first, &second] {
        cluster.sandbox().bind_pod(key, "node").unwrap();
    }
    cluster.sandbox().set_pod_ready(&first, true, cluster.sandbox().now()).unwrap();
    cluster.settle().await;
    let doomed = cluster.sandbox().get(&PODS, &second).unwrap();
    cluster.sandbox().patch(&REPLICA_SETS, &key("web"), &json!({ "spec": { "replicas": 1 } })).unwrap();
    cluster.eventually("one is deleted", |_| !cluster.requests("DELETE").is_empty()).await;
    cluster.settle().await;

    let [request] = cluster.requests("DELETE").try_into().unwrap();
    assert_eq!(request.path, format!("/api/v1/namespaces/shop/pods/{}", second.name()));
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body["preconditions"], json!({ "uid": uid(&doomed) }));
    assert_eq!((body.get("gracePeriodSeconds"), body.get("propagationPolicy")), (None, None));
    let message = format!("Deleted pod: {}", second.name());
    assert!(cluster.events().contains(&normal("SuccessfulDelete", &message)), "{:?}", cluster.events());
    let status = cluster.status("web");
    assert_eq!((&status["replicas"], &status["terminatingReplicas"]), (&json!(1), &json!(1)));
    assert!(
        cluster.metrics().contains("replicaset_controller_sorting_deletion_age_ratio_count 0"),
        "the deleted pod was not ready, so its age is not observed"
    );

    cluster.sandbox().delete_now(&PODS, &second).unwrap();
    cluster.eventually("nothing terminates any more", |_| cluster.status("web")["terminatingReplicas"] == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_deletion_is_reported_and_retried() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.faults().inject(Fault::on(Verb::Delete).resource(PODS).times(2).fail(internal_error()));
        for name in ["a", "b"] {
            create_pod(sandbox, &pod(name).orphan());
        }
    })
    .await;
    cluster.create(&replica_set("web").replicas(0));
    // The retry follows at once, so that the condition is seen in the request only.
    cluster.eventually("the failure is reported", |_| !cluster.bodies("PUT").is_empty()).await;
    let condition = &cluster.bodies("PUT")[0]["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["reason"], &condition["message"]),
        (&json!("ReplicaFailure"), &json!("FailedDelete"), &json!("unable to delete pods: storage is sick"))
    );
    cluster
        .eventually("all is well in the end", |_| {
            cluster.status("web")["replicas"] == 0 && cluster.status("web").get("conditions").is_none()
        })
        .await;
    assert!(cluster.events().contains(&warning("FailedDelete", "Error deleting: storage is sick")));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_no_failure() {
    let cluster = Cluster::start(|sandbox| {
        create_pod(sandbox, &pod("a").orphan());
        sandbox.faults().inject(Fault::on(Verb::Delete).resource(PODS).times(1).fail(Status::not_found(&PODS, "a")));
    })
    .await;
    cluster.create(&replica_set("web").replicas(0));
    cluster.eventually("it was tried", |_| !cluster.requests("DELETE").is_empty()).await;
    cluster.settle().await;
    assert!(cluster.events().iter().all(|(_, reason, _)| reason != "FailedDelete"), "{:?}", cluster.events());
    assert_eq!(cluster.status("web").get("conditions"), None);
}

#[tokio::test(start_paused = true)]
async fn a_pod_recreated_under_the_same_name_is_not_deleted_and_not_reported() {
    let cluster = Cluster::start(|sandbox| {
        create_pod(sandbox, &pod("a").orphan());
        let conflict = Status::conflict(&PODS, "a", "the UID in the precondition does not match");
        sandbox.faults().inject(Fault::on(Verb::Delete).resource(PODS).times(1).fail(conflict));
    })
    .await;
    cluster.create(&replica_set("web").replicas(0));
    cluster.eventually("it was tried again", |_| cluster.requests("DELETE").len() == 2).await;
    cluster.settle().await;
    assert!(cluster.events().iter().all(|(_, reason, _)| reason != "FailedDelete"), "{:?}", cluster.events());
    assert_eq!(cluster.status("web").get("conditions"), None);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_whose_response_was_lost_deletes_no_other_pod() {
    let cluster = Cluster::start(|sandbox| {
        for name in ["a", "b", "c", "d"] {
            create_pod(sandbox, &pod(name).orphan());
        }
        sandbox.faults().inject(Fault::on(Verb::Delete).resource(PODS).lose_answer());
    })
    .await;
    cluster.create(&replica_set("web").replicas(2));
    cluster.eventually("two are counted", |_| cluster.status("web")["replicas"] == 2).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    let paths: BTreeSet<_> = cluster.requests("DELETE").into_iter().map(|request| request.path).collect();
    assert_eq!(paths.len(), 2);
    assert_eq!(cluster.status("web").get("conditions"), None);
}

#[tokio::test(start_paused = true)]
async fn ages_of_deleted_ready_pods_are_observed() {
    let cluster = Cluster::start(|sandbox| {
        for name in ["a", "b"] {
            create_pod(sandbox, &pod(name).orphan());
            sandbox.set_pod_ready(&key(name), true, sandbox.now()).unwrap();
        }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    cluster.create(&replica_set("web").replicas(1));
    cluster.eventually("one is deleted", |_| !cluster.requests("DELETE").is_empty()).await;
    let metrics = cluster.metrics();
    for line in [
        "replicaset_controller_sorting_deletion_age_ratio_sum 1.0",
        "replicaset_controller_sorting_deletion_age_ratio_count 1",
        r#"replicaset_controller_sorting_deletion_age_ratio_bucket{le="0.25"} 0"#,
        r#"replicaset_controller_sorting_deletion_age_ratio_bucket{le="8.0"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}
