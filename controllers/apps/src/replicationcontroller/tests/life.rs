//! Creation, scaling, adoption, release, and the status.

use kcm_testing::sandbox::{Fault, PODS, Status, Verb};
use serde_json::json;

use super::{Cluster, has, scale, web};
use crate::tests::cluster::key;
use crate::tests::fixtures::{create_pod, pod};

#[tokio::test(start_paused = true)]
async fn creates_missing_pods_and_reports_them() {
    let cluster = Cluster::start(|_| {}).await;
    let owner = cluster.create(web(2));
    has(&cluster, 2).await;
    cluster.settle().await;

    let sent = cluster.bodies("POST");
    assert_eq!(sent.len(), 2);
    for pod in &sent {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "generateName": "web-",
                "namespace": "shop",
                "labels": { "app": "web", "tier": "front" },
                "ownerReferences": [{
                    "apiVersion": "v1",
                    "kind": "ReplicationController",
                    "name": "web",
                    "uid": owner["metadata"]["uid"],
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": owner["spec"]["template"]["spec"],
        });
        assert_eq!(*pod, expected);
        let event = ("Normal".to_owned(), "SuccessfulCreate".to_owned(), format!("Created pod: {name}"));
        assert!(cluster.events().contains(&event), "{:?}", cluster.events());
    }
    let status = json!({ "replicas": 2, "fullyLabeledReplicas": 2, "observedGeneration": 1 });
    let mut written = cluster.controller()["status"].clone();
    // The API server leaves out what is zero.
    written.as_object_mut().unwrap().retain(|_, value| *value != json!(0));
    assert_eq!(written, status, "and no terminatingReplicas");
}

#[tokio::test(start_paused = true)]
async fn scales_in_both_directions_and_never_counts_terminating_pods() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(3));
    has(&cluster, 3).await;
    scale(&cluster, 1);
    has(&cluster, 1).await;
    scale(&cluster, 4);
    has(&cluster, 4).await;
    assert_eq!((cluster.requests("POST").len(), cluster.requests("DELETE").len()), (6, 2));
    for delete in cluster.bodies("DELETE") {
        assert!(delete["preconditions"]["uid"].is_string(), "{delete}");
    }
    assert!(cluster.bodies("PUT").iter().all(|put| put["status"].get("terminatingReplicas").is_none()));
}

#[tokio::test(start_paused = true)]
async fn adopts_orphans_that_its_labels_select_and_releases_what_they_do_not() {
    let cluster = Cluster::start(|sandbox| {
        create_pod(sandbox, &pod("orphan").orphan());
        create_pod(sandbox, &pod("other").orphan().labels(json!({ "app": "other" })));
        create_pod(sandbox, &pod("of-a-replica-set"));
    })
    .await;
    let owner = cluster.create(web(1));
    let controller = |name: &str| cluster.object(&PODS, name)["metadata"]["ownerReferences"][0]["uid"].clone();
    let uid = &owner["metadata"]["uid"];
    cluster.eventually("the orphan is adopted", |_| controller("orphan") == *uid).await;
    cluster.settle().await;
    assert!(cluster.requests("POST").is_empty());
    assert!(controller("other").is_null() && controller("of-a-replica-set") == "uid-of-web");

    let relabelled = json!({ "metadata": { "labels": { "app": "mine" } } });
    cluster.sandbox().patch(&PODS, &key("orphan"), &relabelled).unwrap();
    cluster.eventually("it is released", |_| controller("orphan").is_null()).await;
    cluster.eventually("another is created", |_| cluster.requests("POST").len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_view_does_not_read_survives_a_status_update() {
    let cluster = Cluster::start(|_| {}).await;
    let mut controller = web(1);
    controller["metadata"]["annotations"] = json!({ "example.com/note": "kept" });
    controller["spec"]["template"]["spec"]["hostname"] = json!("kept");
    let created = cluster.create(controller);
    has(&cluster, 1).await;
    assert!(!cluster.bodies("PUT").is_empty());
    for put in cluster.bodies("PUT") {
        assert_eq!(put["spec"], created["spec"]);
        assert_eq!(put["metadata"]["annotations"], created["metadata"]["annotations"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_until_it_is_over() {
    let cluster = Cluster::start(|_| {}).await;
    let refused = Status::forbidden(&PODS, "", "exceeded quota: pods");
    let fault = Fault::on(Verb::Create).resource(PODS).fail(refused);
    let quota = cluster.sandbox().faults().inject(fault);
    cluster.create(web(1));
    let condition = || cluster.controller()["status"]["conditions"][0].clone();
    cluster.eventually("the failure is reported", |_| condition()["type"] == "ReplicaFailure").await;
    assert_eq!((&condition()["status"], &condition()["reason"]), (&json!("True"), &json!("FailedCreate")));
    quota.remove();
    has(&cluster, 1).await;
    cluster.eventually("the condition is gone", |_| condition().is_null()).await;
}
