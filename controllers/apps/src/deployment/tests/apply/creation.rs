//! The creation of the new replica set, and taken names.

use std::time::Duration;

use kcm_sandbox_apiserver::{Fault, NAMESPACES, REPLICA_SETS, Status, Verb};
use serde_json::json;

use crate::deployment::tests::cluster::{Cluster, create_deployment, create_set};
use crate::deployment::tests::fixtures::{deployment, key, set};

#[tokio::test(start_paused = true)]
async fn creates_the_replica_set_and_updates_the_status() {
    let cluster = Cluster::start(|_| {}).await;
    let notes = json!({ "note": "kept", "kubectl.kubernetes.io/last-applied-configuration": "{}" });
    let unknown = json!({ "deep": [1, null] });
    let created = cluster.create(
        &deployment("web").replicas(4).with("/spec", "minReadySeconds", json!(5)).annotations(notes.clone()).with(
            "/spec/template/spec",
            "brandNew",
            unknown.clone(),
        ),
    );
    cluster.eventually("the status is written", |_| !cluster.requests("PUT").is_empty()).await;
    cluster.settle().await;

    let [body] = cluster.bodies("POST").try_into().unwrap();
    let hash = body["metadata"]["labels"]["pod-template-hash"].clone();
    let name = format!("web-{}", hash.as_str().unwrap());
    let mut template = created["spec"]["template"].clone();
    template["metadata"]["labels"]["pod-template-hash"] = hash.clone();
    let expected = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "labels": { "app": "web", "pod-template-hash": hash },
            "annotations": {
                "note": "kept",
                "deployment.kubernetes.io/revision": "1",
                "deployment.kubernetes.io/desired-replicas": "4",
                "deployment.kubernetes.io/max-replicas": "5",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": "web",
                "uid": created["metadata"]["uid"],
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": 4,
            "minReadySeconds": 5,
            "selector": { "matchLabels": { "app": "web", "pod-template-hash": hash } },
            "template": template,
        },
    });
    assert_eq!(body, expected);

    let [put] = cluster.bodies("PUT").try_into().unwrap();
    let now = cluster.sandbox().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut expected = created.clone();
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    expected["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!("1");
    expected["status"] = json!({
        "observedGeneration": 1,
        "replicas": 0,
        "updatedReplicas": 0,
        "readyReplicas": 0,
        "availableReplicas": 0,
        "unavailableReplicas": 4,
        "terminatingReplicas": 0,
        "conditions": [
            {
                "type": "Progressing",
                "status": "True",
                "lastUpdateTime": now,
                "lastTransitionTime": now,
                "reason": "NewReplicaSetCreated",
                "message": format!("Created new replica set \"{name}\""),
            },
            {
                "type": "Available",
                "status": "False",
                "lastUpdateTime": now,
                "lastTransitionTime": now,
                "reason": "MinimumReplicasUnavailable",
                "message": "Deployment does not have minimum availability.",
            },
        ],
    });
    assert_eq!(put, expected);
    assert_eq!(cluster.event_messages(), [format!("Scaled up replica set {name} from 0 to 4")]);
}

#[tokio::test(start_paused = true)]
async fn after_a_collision_another_name_is_generated() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&deployment("web"));
    cluster.settle().await;
    let made = cluster.bodies("POST").remove(0);
    let taken = made["metadata"]["name"].as_str().unwrap().to_owned();
    drop(cluster);

    let name = taken.clone();
    let cluster = Cluster::start(move |sandbox| {
        let foreign = set(&name).owned_by("twin").image("image:7").labels(json!({ "app": "twin" }));
        create_set(sandbox, &foreign);
    })
    .await;
    cluster.create(&deployment("web"));
    cluster.eventually("it is created", |_| cluster.requests("POST").len() == 2).await;
    cluster.settle().await;
    assert_eq!(cluster.status()["collisionCount"], 1);
    let names: Vec<_> = cluster.bodies("POST").iter().map(|set| set["metadata"]["name"].clone()).collect();
    assert_eq!(names[0], *taken);
    assert_ne!(names[1], *taken);
    let methods: Vec<_> = cluster.requests("").into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["POST", "GET", "PUT", "POST", "PUT"]);
    assert_eq!(cluster.progress(), "NewReplicaSetCreated");
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_that_was_just_created_for_the_template_is_used() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&deployment("web").replicas(0));
    cluster.eventually("it is created", |_| cluster.status()["observedGeneration"] == 1).await;
    cluster.settle().await;
    let made = cluster.bodies("POST").remove(0);
    drop(cluster);

    for owned in [true, false] {
        let cluster =
            Cluster::start(|sandbox| sandbox.faults().delay_events(&REPLICA_SETS, Duration::from_secs(5))).await;
        let mut theirs = made.clone();
        theirs["metadata"]["ownerReferences"] = json!([]);
        let theirs = cluster.sandbox().create(&REPLICA_SETS, theirs).unwrap();
        let web = cluster.create(&deployment("web").replicas(0));
        if owned {
            let mut owner = made["metadata"]["ownerReferences"].clone();
            owner[0]["uid"] = web["metadata"]["uid"].clone();
            let patch = json!({ "metadata": { "ownerReferences": owner } });
            let name = key(theirs["metadata"]["name"].as_str().unwrap());
            cluster.sandbox().patch(&REPLICA_SETS, &name, &patch).unwrap();
        }
        cluster.eventually("the status is written", |_| cluster.status()["observedGeneration"] == 1).await;
        cluster.settle().await;
        assert_eq!(cluster.requests("POST").len(), 1, "tried once");
        assert_eq!(cluster.status().get("collisionCount"), None);
        let [set] = cluster.sets().try_into().unwrap();
        assert_eq!(set["metadata"]["uid"], theirs["metadata"]["uid"]);
        assert_eq!(set["metadata"]["ownerReferences"][0]["uid"], web["metadata"]["uid"]);
        assert_eq!(cluster.requests("PATCH").len(), usize::from(!owned), "an orphan is adopted");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_creation_is_reported_and_retried() {
    let cluster = Cluster::start(|sandbox| {
        let refusal = Status::new(403, "Forbidden", "exceeded quota");
        sandbox.faults().inject(Fault::on(Verb::Create).resource(REPLICA_SETS).times(3).fail(refusal));
    })
    .await;
    cluster.create(&deployment("web").replicas(2));
    cluster.eventually("the status is written", |_| cluster.progress() == "ReplicaSetCreateError").await;
    let name = cluster.bodies("POST")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let message = format!("Failed to create new replica set \"{name}\": exceeded quota");
    let condition = cluster.condition("Progressing");
    assert_eq!((condition["status"].clone(), condition["message"].clone()), (json!("False"), json!(message)));
    cluster.eventually("it is created", |_| cluster.progress() == "NewReplicaSetCreated").await;
    cluster.settle().await;
    assert_eq!(cluster.requests("POST").len(), 4);
    assert_eq!(cluster.requests("PUT").len(), 2, "the condition is written once");
    assert_eq!(cluster.event_messages(), [message, format!("Scaled up replica set {name} from 0 to 2")]);
}

#[tokio::test(start_paused = true)]
async fn in_a_terminating_namespace_nothing_is_reported_and_nothing_is_retried() {
    let cluster = Cluster::start(|sandbox| {
        create_deployment(sandbox, &deployment("web"));
        sandbox.delete(&NAMESPACES, &kcm_framework::api::ObjectKey::cluster_scoped("shop")).unwrap();
    })
    .await;
    cluster.eventually("a creation was tried", |_| !cluster.requests("POST").is_empty()).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(cluster.requests("").len(), 1);
    assert!(cluster.event_messages().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_template_that_the_api_server_normalizes_creates_no_second_replica_set() {
    let cluster = Cluster::start(|_| {}).await;
    let resources = json!({ "limits": { "cpu": "1000m", "memory": "1024Mi" } });
    cluster.create(&deployment("web").with("/spec/template/spec/containers/0", "resources", resources));
    cluster.eventually("it is created", |_| cluster.status()["observedGeneration"] == 1).await;
    cluster.settle().await;
    let resources = json!({ "limits": { "cpu": "1", "memory": "1Gi" } });
    let [set] = cluster.sets().try_into().unwrap();
    let name = key(set["metadata"]["name"].as_str().unwrap());
    let mut containers = set["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["resources"] = resources;
    let template = json!({ "spec": { "template": { "spec": { "containers": containers, "volumes": [] } } } });
    cluster.sandbox().patch(&REPLICA_SETS, &name, &template).unwrap();
    cluster.settle().await;
    assert_eq!(cluster.sets().len(), 1);

    cluster.patch(&json!({ "spec": { "template": { "spec": { "setHostnameAsFQDN": true } } } }));
    cluster.settle().await;
    assert_eq!(cluster.sets().len(), 2, "an unknown field starts a rollout");
}
