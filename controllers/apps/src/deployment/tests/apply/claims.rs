//! Adoption and release of replica sets.

use kcm_sandbox_apiserver::{DEPLOYMENTS, Fault, REPLICA_SETS, Status, Verb};
use serde_json::json;

use crate::deployment::tests::cluster::{Cluster, create_set};
use crate::deployment::tests::fixtures::{deployment, key, set};

#[tokio::test(start_paused = true)]
async fn adopts_orphans_after_a_live_read_of_the_deployment() {
    let cluster = Cluster::start(|sandbox| {
        create_set(sandbox, &set("b").image("image:0").scaled_to(1, 1).orphan());
        create_set(sandbox, &set("a").image("image:9").orphan());
        create_set(sandbox, &set("theirs").image("image:8").owned_by("twin"));
        create_set(sandbox, &set("unselected").orphan().labels(json!({ "app": "x" })));
    })
    .await;
    let owner = cluster.create(&deployment("web").replicas(1));
    cluster.eventually("the status is written", |_| cluster.status()["observedGeneration"] == 1).await;
    cluster.settle().await;
    let requests = cluster.requests("");
    let order: Vec<_> = requests.iter().map(|request| request.method.as_str()).take(4).collect();
    assert_eq!(order, ["GET", "PATCH", "PATCH", "POST"]);
    let patched: Vec<_> = requests[1..3].iter().map(|request| request.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(patched, ["a", "b"]);
    assert_eq!(requests[1].headers["content-type"], "application/strategic-merge-patch+json");
    let a = cluster.object(&REPLICA_SETS, "a");
    let expected = json!({ "metadata": {
        "ownerReferences": [{
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "web",
            "uid": owner["metadata"]["uid"],
            "controller": true,
            "blockOwnerDeletion": true,
        }],
        "uid": a["metadata"]["uid"],
    } });
    assert_eq!(cluster.bodies("PATCH")[0], expected);
    assert_eq!(cluster.status()["replicas"], 1, "an adopted replica set counts at once");
}

#[tokio::test(start_paused = true)]
async fn releases_a_relabelled_replica_set_and_creates_another() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&deployment("web").replicas(1));
    cluster.eventually("it is created", |_| cluster.status()["observedGeneration"] == 1).await;
    cluster.settle().await;
    let [made] = cluster.sets().try_into().unwrap();
    let name = key(made["metadata"]["name"].as_str().unwrap());
    cluster.sandbox().patch(&REPLICA_SETS, &name, &json!({ "metadata": { "labels": { "app": "x" } } })).unwrap();
    cluster.eventually("there is another", |_| cluster.sets().len() == 2).await;
    cluster.settle().await;
    let released = cluster.object(&REPLICA_SETS, name.name());
    assert!(released["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty), "{released}");
    assert_eq!(cluster.status()["collisionCount"], 1, "the released replica set has its name");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_adopted_for_a_deployment_that_is_deleted_behind_the_cache() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&deployment("web").replicas(0).with("/metadata", "finalizers", json!(["example.com/hold"])));
    cluster.eventually("it is created", |_| cluster.status()["observedGeneration"] == 1).await;
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&DEPLOYMENTS);
    cluster.sandbox().delete(&DEPLOYMENTS, &key("web")).unwrap();
    create_set(cluster.sandbox(), &set("a").image("image:9").orphan());
    cluster.eventually("the owner is looked up", |_| !cluster.requests("GET").is_empty()).await;
    cluster.settle().await;
    assert!(cluster.requests("PATCH").is_empty());
    cluster.sandbox().faults().release_watches(&DEPLOYMENTS);
    cluster.settle().await;
    assert!(cluster.requests("PATCH").is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_when_a_claim_fails() {
    let cluster = Cluster::start(|sandbox| {
        let failure = Status::new(500, "InternalError", "oops");
        sandbox.faults().inject(Fault::on(Verb::Patch).resource(REPLICA_SETS).times(1).fail(failure));
        create_set(sandbox, &set("a").image("image:9").orphan());
    })
    .await;
    cluster.create(&deployment("web").replicas(1));
    cluster.eventually("it was tried", |_| cluster.requests("PATCH").len() == 1).await;
    assert!(cluster.requests("POST").is_empty() && cluster.requests("PUT").is_empty());
    cluster.eventually("all is well in the end", |_| cluster.status()["observedGeneration"] == 1).await;
}

#[tokio::test(start_paused = true)]
async fn of_two_deployments_that_select_the_same_only_the_owner_acts() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(2));
    cluster.run_until_complete().await;
    cluster.create(&deployment("twin").replicas(1).image("image:5"));
    cluster
        .run_until("both are there", || cluster.object(&DEPLOYMENTS, "twin")["status"]["availableReplicas"] == 1)
        .await;
    cluster.settle().await;
    assert_eq!(cluster.sizes(), [("image:1".to_owned(), 2), ("image:5".to_owned(), 1)]);
    assert!(cluster.requests("PATCH").is_empty());
}
