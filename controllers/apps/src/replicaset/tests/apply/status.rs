//! The status, and when it is written.

use kcm_sandbox_apiserver::{Fault, PODS, REPLICA_SETS, Status, Verb};
use serde_json::json;

use crate::replicaset::tests::cluster::Cluster;
use crate::tests::cluster::key;
use crate::tests::fixtures::{create_pod, pod, replica_set};

#[tokio::test(start_paused = true)]
async fn puts_the_whole_object_back_with_its_version() {
    let cluster = Cluster::start(|_| {}).await;
    let unknown = json!({ "options": [{ "name": "ndots", "value": "2" }] });
    let owner =
        cluster.create(&replica_set("web").replicas(0).with("/spec/template/spec", "dnsConfig", unknown.clone()));
    cluster.eventually("the status is written", |_| !cluster.requests("PUT").is_empty()).await;
    let mut expected = owner.clone();
    expected["status"] = json!({
        "replicas": 0,
        "fullyLabeledReplicas": 0,
        "readyReplicas": 0,
        "availableReplicas": 0,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    });
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert_eq!(cluster.bodies("PUT"), [expected]);
    assert_eq!(cluster.replica_set("web")["spec"]["template"]["spec"]["dnsConfig"], unknown);

    cluster.settle().await;
    assert_eq!(cluster.requests("PUT").len(), 1, "a status that does not differ is not written");
}

#[tokio::test(start_paused = true)]
async fn a_failed_status_update_is_retried_once_with_the_live_object() {
    let cluster = Cluster::start(|sandbox| {
        let conflict = Status::conflict(&REPLICA_SETS, "web", "the object has been modified");
        sandbox.faults().inject(Fault::on(Verb::Update).resource(REPLICA_SETS).times(1).fail(conflict));
    })
    .await;
    cluster.create(&replica_set("web").replicas(0));
    cluster.eventually("the status is written", |_| cluster.status("web")["observedGeneration"] == 1).await;
    let methods: Vec<_> = cluster.requests("").iter().map(|request| request.method.clone()).collect();
    assert_eq!(methods, ["PUT", "GET", "PUT"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_becomes_available_after_min_ready_seconds() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(1).min_ready_seconds(30));
    cluster.eventually("there is one", |_| cluster.pods().len() == 1).await;
    let [key] = cluster.pod_keys().try_into().unwrap();
    let since = cluster.sandbox().now();
    cluster.sandbox().set_pod_ready(&key, true, since).unwrap();
    cluster.eventually("it is ready", |_| cluster.status("web")["readyReplicas"] == 1).await;
    assert_eq!(cluster.status("web").get("availableReplicas"), None);
    cluster.eventually("it is available", |_| cluster.status("web")["availableReplicas"] == 1).await;
    let waited = cluster.sandbox().now().duration_since(since).as_secs();
    assert!((29..=31).contains(&waited), "after {waited} s");
}

#[tokio::test(start_paused = true)]
async fn of_a_replica_set_that_is_being_deleted_only_the_status_is_updated() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(2).with("/metadata", "finalizers", json!(["example.com/hold"])));
    cluster.eventually("there are two", |_| cluster.status("web")["replicas"] == 2).await;
    cluster.settle().await;
    cluster.sandbox().delete(&REPLICA_SETS, &key("web")).unwrap();
    cluster.settle().await;
    let gone = cluster.pod_keys().remove(0);
    create_pod(cluster.sandbox(), &pod("orphan").orphan());
    cluster.sandbox().delete_now(&PODS, &gone).unwrap();
    cluster.eventually("the loss is counted", |_| cluster.status("web")["replicas"] == 1).await;
    cluster.settle().await;
    assert_eq!((cluster.pods().len(), cluster.requests("POST").len()), (2, 2), "the orphan and one of its own");
    assert!(cluster.requests("PATCH").is_empty() && cluster.requests("DELETE").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_update_does_not_delay_the_availability_of_a_pod() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(1).min_ready_seconds(3600));
    cluster.eventually("there is one", |_| cluster.pods().len() == 1).await;
    let [pod] = cluster.pod_keys().try_into().unwrap();
    let since = cluster.sandbox().now();
    cluster.sandbox().set_pod_ready(&pod, true, since).unwrap();
    cluster.eventually("it is ready", |_| cluster.status("web")["readyReplicas"] == 1).await;
    cluster.settle().await;

    // After a missing permission, the next attempt is a minute away.
    let refused = Status::forbidden(&REPLICA_SETS, "web", "User \"u\" cannot update resource \"replicasets/status\"");
    let refused = Fault::on(Verb::Update).resource(REPLICA_SETS).times(1).fail(refused);
    let refused = cluster.sandbox().faults().inject(refused);
    cluster.sandbox().patch(&REPLICA_SETS, &key("web"), &json!({ "spec": { "minReadySeconds": 20 } })).unwrap();
    cluster.eventually("it is available", |_| cluster.status("web")["availableReplicas"] == 1).await;
    let waited = cluster.sandbox().now().duration_since(since).as_secs();
    assert_eq!((refused.hits(), cluster.take_errors().len()), (1, 1));
    assert!((19..=22).contains(&waited), "after {waited} s");
}

#[tokio::test(start_paused = true)]
async fn a_status_update_whose_outcome_is_unknown_is_left_to_the_next_reconcile() {
    let cluster = Cluster::start(|sandbox| {
        let failing = Status::new(500, "InternalError", "no");
        sandbox.faults().inject(Fault::on(Verb::Update).resource(REPLICA_SETS).times(1).fail(failing));
    })
    .await;
    cluster.create(&replica_set("web").replicas(0));
    cluster.eventually("the status is written", |_| cluster.status("web")["observedGeneration"] == 1).await;
    let methods: Vec<_> = cluster.requests("").iter().map(|request| request.method.clone()).collect();
    assert_eq!(methods, ["PUT", "PUT"], "the live object is read only after a conflict");
    drop(cluster.take_errors());
}
