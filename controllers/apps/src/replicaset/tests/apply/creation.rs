//! Pods that are missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kcm_sandbox_apiserver::{Fault, NAMESPACES, PODS, REPLICA_SETS, Status, Verb};
use serde_json::json;
use tokio::time::Instant;

use super::{normal, uid, warning};
use crate::replicaset::tests::cluster::Cluster;
use crate::tests::cluster::key;
use crate::tests::fixtures::{create_replica_set, replica_set};

#[tokio::test(start_paused = true)]
async fn creates_missing_pods_and_records_events() {
    let cluster = Cluster::start(|_| {}).await;
    let owner = cluster.create(&replica_set("web").replicas(2));
    cluster
        .eventually("both pods are counted", |sandbox| {
            sandbox.get(&REPLICA_SETS, &key("web")).is_some_and(|web| web["status"]["replicas"] == 2)
        })
        .await;
    cluster.settle().await;

    let sent = cluster.bodies("POST");
    assert_eq!(sent.len(), 2);
    for pod in &sent {
        let name = pod["metadata"]["name"].as_str().unwrap();
        assert!(name.starts_with("web-") && name.len() == "web-".len() + 5, "{name}");
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "generateName": "web-",
                "namespace": "shop",
                "labels": { "app": "web" },
                "ownerReferences": [{
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": uid(&owner),
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": pod["spec"],
        });
        assert_eq!(*pod, expected);
        assert_eq!(pod["spec"], owner["spec"]["template"]["spec"]);
        let message = format!("Created pod: {name}");
        assert!(cluster.events().contains(&normal("SuccessfulCreate", &message)), "{:?}", cluster.events());
    }
    assert_eq!(
        cluster.status("web"),
        json!({
            "replicas": 2,
            "fullyLabeledReplicas": 2,
            "terminatingReplicas": 0,
            "observedGeneration": 1,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn replaces_failed_and_terminating_pods_at_once_and_leaves_them() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(2).with(
        "/spec/template/metadata",
        "finalizers",
        json!(["example.com/hold"]),
    ));
    cluster.eventually("there are two", |_| cluster.pods().len() == 2).await;
    let [first, second] = cluster.pod_keys().try_into().unwrap();
    cluster.sandbox().set_pod_phase(&first, "Failed").unwrap();
    cluster.sandbox().delete_now(&PODS, &second).unwrap();
    cluster.eventually("there are two more", |_| cluster.pods().len() == 4).await;
    cluster.settle().await;
    assert_eq!(cluster.pods().len(), 4);
    assert_eq!((cluster.requests("DELETE").len(), cluster.requests("PATCH").len()), (0, 0));
    let status = cluster.status("web");
    assert_eq!((&status["replicas"], &status["terminatingReplicas"]), (&json!(2), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_template_is_reported_and_retried_with_back_off() {
    let refuse = Arc::new(AtomicBool::new(true));
    let refused = Arc::clone(&refuse);
    let cluster = Cluster::start(|sandbox| {
        sandbox.admit(move |attempt| {
            let hit = attempt.verb == Verb::Create && *attempt.resource == PODS && refused.load(Ordering::Relaxed);
            if hit { Err(Status::new(422, "Invalid", "Pod is invalid: spec.odd")) } else { Ok(()) }
        });
    })
    .await;
    cluster.create(&replica_set("web").replicas(3));
    cluster.eventually("it was tried again", |_| cluster.requests("POST").len() >= 3).await;
    cluster.settle().await;
    let tried = cluster.requests("POST").len();
    assert!(tried < 12, "{tried} creations: one each time, and the times grow apart");
    assert!(cluster.events().contains(&warning("FailedCreate", "Error creating: Pod is invalid: spec.odd")));
    let condition = &cluster.status("web")["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"], &condition["reason"], &condition["message"]),
        (&json!("ReplicaFailure"), &json!("True"), &json!("FailedCreate"), &json!("Pod is invalid: spec.odd"))
    );
    refuse.store(false, Ordering::Relaxed);
    cluster.eventually("all is well in the end", |_| cluster.status("web")["replicas"] == 3).await;
    assert_eq!(cluster.status("web").get("conditions"), None);
}

#[tokio::test(start_paused = true)]
async fn a_quota_of_10_costs_at_most_15_of_100_creations_at_first() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.admit(|attempt| {
            let used = attempt.count(&PODS, attempt.key.namespace());
            let hit = attempt.verb == Verb::Create && *attempt.resource == PODS && used >= 10;
            if hit { Err(attempt.exceeded_quota("ten", "pods", used, 10)) } else { Ok(()) }
        });
    })
    .await;
    cluster.create(&replica_set("web").replicas(100));
    cluster.eventually("the status is written", |_| !cluster.requests("PUT").is_empty()).await;
    let requests = cluster.requests("");
    assert_eq!(requests.iter().take_while(|request| request.method == "POST").count(), 15);
    cluster.eventually("it was tried again", |_| cluster.requests("POST").len() > 20).await;
    assert_eq!(cluster.pods().len(), 10);
    let condition = &cluster.status("web")["conditions"][0];
    assert_eq!((&condition["type"], &condition["reason"]), (&json!("ReplicaFailure"), &json!("FailedCreate")));
    let message = condition["message"].as_str().unwrap();
    assert!(message.contains("exceeded quota: ten"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_terminating_namespace_is_left_in_peace() {
    let cluster = Cluster::start(|sandbox| {
        create_replica_set(sandbox, &replica_set("web").replicas(0));
        sandbox.delete(&NAMESPACES, &kcm_framework::api::ObjectKey::cluster_scoped("shop")).unwrap();
    })
    .await;
    cluster.sandbox().patch(&REPLICA_SETS, &key("web"), &json!({ "spec": { "replicas": 5 } })).unwrap();
    cluster.eventually("a creation was tried", |_| !cluster.requests("POST").is_empty()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(cluster.pods().is_empty() && cluster.events().is_empty(), "{:?}", cluster.events());
    assert_eq!(cluster.status("web").get("conditions"), None);
    assert_eq!(cluster.requests("POST").len(), 2, "one for the change of the spec, one for that of the status");
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_response_was_lost_is_retried_and_creates_one() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.faults().inject(Fault::on(Verb::Create).resource(PODS).skip(1).times(3).lose_answer());
        sandbox.admit(|attempt| {
            let have = attempt.count(&PODS, attempt.key.namespace());
            let create = attempt.verb == Verb::Create && *attempt.resource == PODS;
            assert!(!create || have < 10, "never more pods than spec.replicas");
            Ok(())
        });
    })
    .await;
    cluster.create(&replica_set("web").replicas(10));
    let began = Instant::now();
    cluster.eventually("all are counted", |_| cluster.status("web")["replicas"] == 10).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!((cluster.pods().len(), cluster.requests("POST").len()), (10, 13));
    let reported = cluster.events();
    assert_eq!(reported.iter().filter(|(_, reason, _)| reason == "SuccessfulCreate").count(), 10, "{reported:?}");
    assert!(reported.iter().all(|(kind, ..)| kind == "Normal"), "{reported:?}");
    assert!(cluster.requests("DELETE").is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_pod_is_created_twice_while_the_cache_is_behind() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.faults().delay_events(&PODS, Duration::from_secs(5));
    })
    .await;
    cluster.create(&replica_set("web").replicas(5));
    cluster.eventually("they are created", |_| cluster.pods().len() == 5).await;
    cluster.sandbox().patch(&REPLICA_SETS, &key("web"), &json!({ "spec": { "replicas": 7 } })).unwrap();
    cluster.eventually("all are counted", |_| cluster.status("web")["replicas"] == 7).await;
    assert_eq!(cluster.requests("POST").len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_not_a_failure() {
    let cluster = Cluster::start(|sandbox| {
        let taken = Status::already_exists(&PODS, "web-x");
        sandbox.faults().inject(Fault::on(Verb::Create).resource(PODS).times(3).fail(taken));
    })
    .await;
    cluster.create(&replica_set("web").replicas(1));
    cluster.eventually("it is counted", |_| cluster.status("web")["replicas"] == 1).await;
    assert_eq!(cluster.requests("POST").len(), 4);
    assert!(cluster.events().iter().all(|(kind, ..)| kind == "Normal"), "{:?}", cluster.events());
}

#[tokio::test(start_paused = true)]
async fn no_more_than_a_burst_is_created_at_once() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(520));
    cluster.eventually("the status is written", |_| !cluster.requests("PUT").is_empty()).await;
    let requests = cluster.requests("");
    assert_eq!(requests.iter().take_while(|request| request.method == "POST").count(), 500);
    cluster.eventually("all are counted", |_| cluster.status("web")["replicas"] == 520).await;
    assert_eq!(cluster.requests("POST").len(), 520);
}
