//! What is written, and what becomes of it, on an API server in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kcm_sandbox::{Fault, NAMESPACES, PODS, REPLICA_SETS, Status, Verb};
use serde_json::{Value, json};

use super::cluster::{Cluster, create_pod, create_replica_set};
use super::fixtures::{key, pod, replica_set};

fn warning(reason: &str, message: &str) -> (String, String, String) {
    ("Warning".to_owned(), reason.to_owned(), message.to_owned())
}

fn normal(reason: &str, message: &str) -> (String, String, String) {
    ("Normal".to_owned(), reason.to_owned(), message.to_owned())
}

fn internal_error() -> Status {
    Status::new(500, "InternalError", "storage is sick")
}

fn uid(object: &Value) -> &Value {
    &object["metadata"]["uid"]
}

#[tokio::test(start_paused = true)]
async fn creates_the_pods_that_are_missing_and_says_so() {
    let cluster = Cluster::start(|_| {}).await;
    let owner = cluster.create(&replica_set("web").replicas(2));
    cluster
        .until("both pods are counted", |sandbox| {
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
        let text = format!("Created pod: {name}");
        assert!(cluster.events().contains(&normal("SuccessfulCreate", &text)), "{:?}", cluster.events());
    }
    assert_eq!(
        cluster.status("web"),
        json!({
            "replicas": 2,
            "fullyLabeledReplicas": 2,
            "readyReplicas": 0,
            "availableReplicas": 0,
            "terminatingReplicas": 0,
            "observedGeneration": 1,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn puts_the_whole_object_back_with_its_version() {
    let cluster = Cluster::start(|_| {}).await;
    let unknown = json!({ "brandNew": [1, { "x": 0.5 }] });
    let owner = cluster.create(&replica_set("web").replicas(0).with("/spec/template/spec", "unknown", unknown.clone()));
    cluster.until("the status is written", |_| !cluster.requests("PUT").is_empty()).await;
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
    assert_eq!(cluster.replica_set("web")["spec"]["template"]["spec"]["unknown"], unknown);

    cluster.settle().await;
    assert_eq!(cluster.requests("PUT").len(), 1, "a status that does not differ is not written");
}

#[tokio::test(start_paused = true)]
async fn deletes_what_is_too_much_by_uid() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(2));
    cluster.until("there are two", |_| cluster.pods().len() == 2).await;
    cluster.settle().await;
    let [first, second] = cluster.pod_keys().try_into().unwrap();
    for key in [&first, &second] {
        cluster.sandbox.bind_pod(key, "node").unwrap();
    }
    cluster.sandbox.set_pod_ready(&first, true, cluster.sandbox.now()).unwrap();
    cluster.settle().await;
    let doomed = cluster.sandbox.get(&PODS, &second).unwrap();
    cluster.sandbox.patch(&REPLICA_SETS, &key("web"), &json!({ "spec": { "replicas": 1 } })).unwrap();
    cluster.until("one is deleted", |_| !cluster.requests("DELETE").is_empty()).await;
    cluster.settle().await;

    let [request] = cluster.requests("DELETE").try_into().unwrap();
    assert_eq!(request.path, format!("/api/v1/namespaces/shop/pods/{}", second.name()));
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body["preconditions"], json!({ "uid": uid(&doomed) }));
    assert_eq!((body.get("gracePeriodSeconds"), body.get("propagationPolicy")), (None, None));
    let text = format!("Deleted pod: {}", second.name());
    assert!(cluster.events().contains(&normal("SuccessfulDelete", &text)), "{:?}", cluster.events());
    let status = cluster.status("web");
    assert_eq!((&status["replicas"], &status["terminatingReplicas"]), (&json!(1), &json!(1)));
    assert!(
        cluster.metrics().contains("replicaset_controller_sorting_deletion_age_ratio_count 0"),
        "the pod that went was not ready, so its age is not observed"
    );

    cluster.sandbox.delete_now(&PODS, &second).unwrap();
    cluster.until("nothing terminates any more", |_| cluster.status("web")["terminatingReplicas"] == 0).await;
}

#[tokio::test(start_paused = true)]
async fn replaces_failed_and_terminating_pods_at_once_and_leaves_them() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(2).with(
        "/spec/template/metadata",
        "finalizers",
        json!(["example.com/hold"]),
    ));
    cluster.until("there are two", |_| cluster.pods().len() == 2).await;
    let [first, second] = cluster.pod_keys().try_into().unwrap();
    cluster.sandbox.set_pod_phase(&first, "Failed").unwrap();
    cluster.sandbox.delete_now(&PODS, &second).unwrap();
    cluster.until("there are two more", |_| cluster.pods().len() == 4).await;
    cluster.settle().await;
    assert_eq!(cluster.pods().len(), 4);
    assert_eq!((cluster.requests("DELETE").len(), cluster.requests("PATCH").len()), (0, 0));
    let status = cluster.status("web");
    assert_eq!((&status["replicas"], &status["terminatingReplicas"]), (&json!(2), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn adopts_orphans_after_having_asked_whether_the_owner_is_still_there() {
    let cluster = Cluster::start(|sandbox| {
        for name in ["b", "a", "c"] {
            create_pod(sandbox, &pod(name).orphan());
        }
    })
    .await;
    let owner = cluster.create(&replica_set("web").replicas(2));
    cluster.until("one of three is deleted", |_| !cluster.requests("DELETE").is_empty()).await;
    cluster.settle().await;

    let order: Vec<_> = cluster.requests("").iter().map(|request| request.method.clone()).take(5).collect();
    assert_eq!(order, ["GET", "PATCH", "PATCH", "PATCH", "DELETE"]);
    let patches = cluster.requests("PATCH");
    let paths: Vec<_> = patches.iter().map(|request| request.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(paths, ["a", "b", "c"]);
    assert_eq!(patches[0].headers["content-type"], "application/strategic-merge-patch+json");
    let a = cluster.sandbox.get(&PODS, &key("a")).unwrap();
    assert_eq!(
        patches[0].body,
        format!(
            concat!(
                r#"{{"metadata":{{"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","#,
                r#""uid":{},"controller":true,"blockOwnerDeletion":true}}],"uid":{}}}}}"#
            ),
            uid(&owner),
            uid(&a)
        )
    );
    assert_eq!(a["metadata"]["ownerReferences"][0]["uid"], *uid(&owner));
    assert_eq!(cluster.requests("POST").len(), 0);
    assert_eq!(cluster.status("web")["replicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn adopts_nothing_for_an_owner_that_only_the_api_server_knows_to_be_deleted() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(0).with("/metadata", "finalizers", json!(["example.com/hold"])));
    cluster.until("the status is written", |_| !cluster.requests("PUT").is_empty()).await;
    cluster.settle().await;
    cluster.sandbox.faults().hold_watches(&REPLICA_SETS);
    cluster.sandbox.delete(&REPLICA_SETS, &key("web")).unwrap();
    create_pod(&cluster.sandbox, &pod("a").orphan());
    cluster.until("the owner is looked up", |_| !cluster.requests("GET").is_empty()).await;
    cluster.settle().await;
    assert!(cluster.requests("PATCH").is_empty());
    cluster.sandbox.faults().release_watches(&REPLICA_SETS);
    cluster.settle().await;
    assert!(cluster.requests("PATCH").is_empty() && cluster.requests("POST").is_empty());
}

#[tokio::test(start_paused = true)]
async fn does_not_scale_when_a_claim_fails_and_tries_every_claim() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.faults().inject(Fault::on(Verb::Patch).resource(PODS).times(2).fail(internal_error()));
        for name in ["a", "b"] {
            create_pod(sandbox, &pod(name).orphan());
        }
    })
    .await;
    cluster.create(&replica_set("web").replicas(3));
    cluster.until("both were tried", |_| cluster.requests("PATCH").len() == 2).await;
    assert!(cluster.requests("POST").is_empty() && cluster.requests("PUT").is_empty());
    cluster.until("all is well in the end", |_| cluster.status("web")["replicas"] == 3).await;
    assert_eq!(cluster.pods().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn releases_a_pod_that_was_relabelled_and_replaces_it() {
    let cluster = Cluster::start(|_| {}).await;
    let owner = cluster.create(&replica_set("web").replicas(1));
    cluster.until("there is one", |_| cluster.status("web")["replicas"] == 1).await;
    cluster.settle().await;
    let [released] = cluster.pod_keys().try_into().unwrap();
    let relabelled =
        cluster.sandbox.patch(&PODS, &released, &json!({ "metadata": { "labels": { "app": "x" } } })).unwrap();
    cluster.until("it is replaced", |_| cluster.pods().len() == 2).await;
    cluster.settle().await;
    let [patch] = cluster.requests("PATCH").try_into().unwrap();
    assert_eq!(
        patch.body,
        format!(
            r#"{{"metadata":{{"uid":{},"ownerReferences":[{{"$patch":"delete","uid":{}}}]}}}}"#,
            uid(&relabelled),
            uid(&owner)
        )
    );
    let pod = cluster.sandbox.get(&PODS, &released).unwrap();
    assert!(pod["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty), "{pod}");

    cluster.sandbox.patch(&PODS, &released, &json!({ "metadata": { "labels": { "app": "web" } } })).unwrap();
    cluster.until("it is adopted, and one is too much", |_| !cluster.requests("DELETE").is_empty()).await;
    assert_eq!(cluster.requests("PATCH").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_template_that_is_refused_is_told_and_tried_again_with_back_off() {
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
    cluster.until("it was tried again", |_| cluster.requests("POST").len() >= 3).await;
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
    cluster.until("all is well in the end", |_| cluster.status("web")["replicas"] == 3).await;
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
    cluster.until("the status is written", |_| !cluster.requests("PUT").is_empty()).await;
    let requests = cluster.requests("");
    assert_eq!(requests.iter().take_while(|request| request.method == "POST").count(), 15);
    cluster.until("it was tried again", |_| cluster.requests("POST").len() > 20).await;
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
        sandbox.delete(&NAMESPACES, &kcm_api::ObjectKey::cluster_scoped("shop")).unwrap();
    })
    .await;
    cluster.sandbox.patch(&REPLICA_SETS, &key("web"), &json!({ "spec": { "replicas": 5 } })).unwrap();
    cluster.until("a creation was tried", |_| !cluster.requests("POST").is_empty()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(cluster.pods().is_empty() && cluster.events().is_empty(), "{:?}", cluster.events());
    assert_eq!(cluster.status("web").get("conditions"), None);
    assert_eq!(cluster.requests("POST").len(), 2, "one for the change of the spec, one for that of the status");
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_was_lost_is_not_made_again() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.faults().inject(Fault::on(Verb::Create).resource(PODS).skip(1).times(3).lose_answer());
        sandbox.admit(|attempt| {
            let have = attempt.count(&PODS, attempt.key.namespace());
            let create = attempt.verb == Verb::Create && *attempt.resource == PODS;
            assert!(!create || have < 10, "never more pods than asked for");
            Ok(())
        });
    })
    .await;
    cluster.create(&replica_set("web").replicas(10));
    cluster.until("all are counted", |_| cluster.status("web")["replicas"] == 10).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!((cluster.pods().len(), cluster.requests("POST").len()), (10, 10));
    assert!(cluster.requests("DELETE").is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_pod_is_created_twice_while_the_cache_is_behind() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.faults().delay_events(&PODS, Duration::from_secs(5));
    })
    .await;
    cluster.create(&replica_set("web").replicas(5));
    cluster.until("they are created", |_| cluster.pods().len() == 5).await;
    cluster.sandbox.patch(&REPLICA_SETS, &key("web"), &json!({ "spec": { "replicas": 7 } })).unwrap();
    cluster.until("all are counted", |_| cluster.status("web")["replicas"] == 7).await;
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
    cluster.until("it is counted", |_| cluster.status("web")["replicas"] == 1).await;
    assert_eq!(cluster.requests("POST").len(), 4);
    assert!(cluster.events().iter().all(|(kind, ..)| kind == "Normal"), "{:?}", cluster.events());
}

#[tokio::test(start_paused = true)]
async fn a_failed_deletion_is_told_and_tried_again() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.faults().inject(Fault::on(Verb::Delete).resource(PODS).times(2).fail(internal_error()));
        for name in ["a", "b"] {
            create_pod(sandbox, &pod(name).orphan());
        }
    })
    .await;
    cluster.create(&replica_set("web").replicas(0));
    cluster.until("the failure is told", |_| cluster.status("web").get("conditions").is_some()).await;
    let condition = &cluster.status("web")["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["reason"], &condition["message"]),
        (&json!("ReplicaFailure"), &json!("FailedDelete"), &json!("unable to delete pods: storage is sick"))
    );
    cluster
        .until("all is well in the end", |_| {
            cluster.status("web")["replicas"] == 0 && cluster.status("web").get("conditions").is_none()
        })
        .await;
    assert!(cluster.events().contains(&warning("FailedDelete", "Error deleting: storage is sick")));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_already_is_as_good_as_deleted() {
    let cluster = Cluster::start(|sandbox| {
        create_pod(sandbox, &pod("a").orphan());
        sandbox.faults().inject(Fault::on(Verb::Delete).resource(PODS).times(1).fail(Status::not_found(&PODS, "a")));
    })
    .await;
    cluster.create(&replica_set("web").replicas(0));
    cluster.until("it was tried", |_| !cluster.requests("DELETE").is_empty()).await;
    cluster.settle().await;
    assert!(cluster.events().iter().all(|(_, reason, _)| reason != "FailedDelete"), "{:?}", cluster.events());
    assert_eq!(cluster.status("web").get("conditions"), None);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_put_is_tried_once_more_with_what_is_there_now() {
    let cluster = Cluster::start(|sandbox| {
        let conflict = Status::conflict(&REPLICA_SETS, "web", "the object has been modified");
        sandbox.faults().inject(Fault::on(Verb::Update).resource(REPLICA_SETS).times(1).fail(conflict));
    })
    .await;
    cluster.create(&replica_set("web").replicas(0));
    cluster.until("the status is written", |_| cluster.status("web")["observedGeneration"] == 1).await;
    let methods: Vec<_> = cluster.requests("").iter().map(|request| request.method.clone()).collect();
    assert_eq!(methods, ["PUT", "GET", "PUT"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_becomes_available_when_its_time_has_come() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(1).min_ready_seconds(30));
    cluster.until("there is one", |_| cluster.pods().len() == 1).await;
    let [key] = cluster.pod_keys().try_into().unwrap();
    let since = cluster.sandbox.now();
    cluster.sandbox.set_pod_ready(&key, true, since).unwrap();
    cluster.until("it is ready", |_| cluster.status("web")["readyReplicas"] == 1).await;
    assert_eq!(cluster.status("web")["availableReplicas"], 0);
    cluster.until("it is available", |_| cluster.status("web")["availableReplicas"] == 1).await;
    let waited = cluster.sandbox.now().duration_since(since).as_secs();
    assert!((29..=31).contains(&waited), "after {waited} s");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_replica_set_is_left_alone_but_its_status_is_kept() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(2).with("/metadata", "finalizers", json!(["example.com/hold"])));
    cluster.until("there are two", |_| cluster.status("web")["replicas"] == 2).await;
    cluster.settle().await;
    cluster.sandbox.delete(&REPLICA_SETS, &key("web")).unwrap();
    cluster.settle().await;
    let gone = cluster.pod_keys().remove(0);
    cluster.sandbox.delete_now(&PODS, &gone).unwrap();
    cluster.until("the loss is counted", |_| cluster.status("web")["replicas"] == 1).await;
    cluster.settle().await;
    assert_eq!((cluster.pods().len(), cluster.requests("POST").len()), (1, 2));
}
