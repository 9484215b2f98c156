//! Adoption and release.

use kcm_sandbox_apiserver::{Fault, PODS, REPLICA_SETS, Status, Verb};
use serde_json::json;

use super::{internal_error, uid};
use crate::replicaset::tests::cluster::Cluster;
use crate::tests::cluster::key;
use crate::tests::fixtures::{create_pod, pod, replica_set};

#[tokio::test(start_paused = true)]
async fn adopts_orphans_after_a_live_read_of_the_owner() {
    let cluster = Cluster::start(|sandbox| {
        for name in ["b", "a", "c"] {
            create_pod(sandbox, &pod(name).orphan());
        }
    })
    .await;
    let owner = cluster.create(&replica_set("web").replicas(2));
    cluster.eventually("one of three is deleted", |_| !cluster.requests("DELETE").is_empty()).await;
    cluster.settle().await;

    let order: Vec<_> = cluster.requests("").iter().map(|request| request.method.clone()).take(5).collect();
    assert_eq!(order, ["GET", "PATCH", "PATCH", "PATCH", "DELETE"]);
    let patches = cluster.requests("PATCH");
    let paths: Vec<_> = patches.iter().map(|request| request.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(paths, ["a", "b", "c"]);
    assert_eq!(patches[0].headers["content-type"], "application/strategic-merge-patch+json");
    let a = cluster.sandbox().get(&PODS, &key("a")).unwrap();
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
async fn adopts_nothing_for_an_owner_that_is_deleted_behind_the_cache() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(0).with("/metadata", "finalizers", json!(["example.com/hold"])));
    cluster.eventually("the status is written", |_| !cluster.requests("PUT").is_empty()).await;
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&REPLICA_SETS);
    cluster.sandbox().delete(&REPLICA_SETS, &key("web")).unwrap();
    create_pod(cluster.sandbox(), &pod("a").orphan());
    cluster.eventually("the owner is looked up", |_| !cluster.requests("GET").is_empty()).await;
    cluster.settle().await;
    assert!(cluster.requests("PATCH").is_empty());
    cluster.sandbox().faults().release_watches(&REPLICA_SETS);
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
    cluster.eventually("both were tried", |_| cluster.requests("PATCH").len() == 2).await;
    assert!(cluster.requests("POST").is_empty() && cluster.requests("PUT").is_empty());
    cluster.eventually("all is well in the end", |_| cluster.status("web")["replicas"] == 3).await;
    assert_eq!(cluster.pods().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn releases_a_pod_that_was_relabelled_and_replaces_it() {
    let cluster = Cluster::start(|_| {}).await;
    let owner = cluster.create(&replica_set("web").replicas(1));
    cluster.eventually("there is one", |_| cluster.status("web")["replicas"] == 1).await;
    cluster.settle().await;
    let [released] = cluster.pod_keys().try_into().unwrap();
    let relabelled =
        cluster.sandbox().patch(&PODS, &released, &json!({ "metadata": { "labels": { "app": "x" } } })).unwrap();
    cluster.eventually("it is replaced", |_| cluster.pods().len() == 2).await;
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
    let pod = cluster.sandbox().get(&PODS, &released).unwrap();
    assert!(pod["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty), "{pod}");

    cluster.sandbox().patch(&PODS, &released, &json!({ "metadata": { "labels": { "app": "web" } } })).unwrap();
    cluster.eventually("it is adopted, and one is surplus", |_| !cluster.requests("DELETE").is_empty()).await;
    assert_eq!(cluster.requests("PATCH").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn adopts_nothing_while_the_cache_has_an_owner_that_was_recreated() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(0));
    cluster.eventually("the status is written", |_| !cluster.requests("PUT").is_empty()).await;
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&REPLICA_SETS);
    cluster.sandbox().delete_now(&REPLICA_SETS, &key("web")).unwrap();
    let recreated = cluster.create(&replica_set("web").replicas(1));
    let orphan = create_pod(cluster.sandbox(), &pod("a").orphan());
    cluster.eventually("the owner is looked up", |_| !cluster.requests("GET").is_empty()).await;
    cluster.settle().await;
    assert!(cluster.requests("PATCH").is_empty());

    cluster.sandbox().faults().release_watches(&REPLICA_SETS);
    cluster.eventually("the recreated one adopts", |_| cluster.status("web")["replicas"] == 1).await;
    let adopted = cluster.sandbox().get(&PODS, &key("a")).unwrap();
    assert_eq!(uid(&adopted), uid(&orphan));
    assert_eq!(adopted["metadata"]["ownerReferences"][0]["uid"], *uid(&recreated));
    assert!(cluster.requests("POST").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_release_of_a_deleted_pod_is_no_failure() {
    let cluster = Cluster::start(|sandbox| {
        let answers = [Status::not_found(&PODS, "x"), Status::new(422, "Invalid", "no such reference")];
        for (at, answer) in answers.into_iter().enumerate() {
            sandbox.faults().inject(Fault::on(Verb::Patch).resource(PODS).skip(at).times(1).fail(answer));
        }
    })
    .await;
    cluster.create(&replica_set("web").replicas(2));
    cluster.eventually("there are two", |_| cluster.status("web")["replicas"] == 2).await;
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&REPLICA_SETS);
    for key in cluster.pod_keys() {
        cluster.sandbox().patch(&PODS, &key, &json!({ "metadata": { "labels": { "app": "x" } } })).unwrap();
    }
    cluster.eventually("they are replaced", |_| cluster.pods().len() == 4).await;
    cluster.sandbox().faults().release_watches(&REPLICA_SETS);
    cluster.eventually("the new ones are counted", |_| cluster.status("web")["replicas"] == 2).await;
    assert_eq!(cluster.requests("POST").len(), 4);
    let methods: Vec<_> = cluster.requests("").into_iter().map(|request| request.method).collect();
    let last_creation = methods.iter().rposition(|method| method == "POST").unwrap();
    let releases = methods[..last_creation].iter().filter(|method| *method == "PATCH").count();
    assert_eq!(releases, 2, "no release was retried before the pods were replaced: {methods:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_orphan_is_no_failure() {
    let cluster = Cluster::start(|sandbox| {
        sandbox.faults().inject(Fault::on(Verb::Patch).resource(PODS).times(1).fail(Status::not_found(&PODS, "a")));
        create_pod(sandbox, &pod("a").orphan());
    })
    .await;
    cluster.create(&replica_set("web").replicas(1));
    cluster.eventually("the status is written", |_| !cluster.requests("PUT").is_empty()).await;
    let methods: Vec<_> = cluster.requests("").into_iter().map(|request| request.method).take(4).collect();
    assert_eq!(methods, ["GET", "PATCH", "POST", "PUT"]);
}
