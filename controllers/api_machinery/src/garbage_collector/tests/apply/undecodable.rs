//! Objects whose metadata can be decoded, and nothing else of them. Another controller's cache of pods holds them.

use std::time::Duration;

use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{CONFIG_MAPS, PODS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::json;

use super::{Made, create, create_in, delete, hold, key, left, names, owners, release, start};
use crate::garbage_collector::DESCRIPTOR;
use crate::resourcequota;

const MINUTE: Duration = Duration::from_mins(1);

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR, resourcequota::DESCRIPTOR])
        .namespace("shop")
        .prepare(|sandbox| sandbox.register(super::WIDGETS))
        .allow_error("Object cannot be decoded")
}

fn break_pod(sandbox: &Sandbox, name: &str) {
    let broken = json!({ "status": { "conditions": [{ "type": 5 }] } });
    DirectClient::new(sandbox).merge(&PODS, &key(name), Some("status"), &broken).expect("it is there");
}

/// Makes a pod decodable again. The API server refuses to write it otherwise.
fn repair_pod(sandbox: &Sandbox, name: &str) {
    sandbox.patch_status(&PODS, &key(name), &json!({ "status": { "conditions": null } })).expect("it is there");
}

fn break_metadata(sandbox: &Sandbox, name: &str) {
    let broken = json!({ "metadata": { "labels": { "a": 5 } } });
    DirectClient::new(sandbox).merge(&PODS, &key(name), None, &broken).expect("it is there");
}

fn undecodable_pod(cluster: &TestCluster, name: &str, owner: &Made, blocks: bool) {
    create(cluster.sandbox(), &PODS, name, &[(owner, blocks)]);
    break_pod(cluster.sandbox(), name);
}

#[tokio::test(start_paused = true)]
async fn a_dependent_that_cannot_be_decoded_goes_after_its_owner() {
    for (policy, is_broken_first) in
        [("Background", true), ("Background", false), ("Foreground", true), ("Foreground", false)]
    {
        let cluster = start(environment()).await;
        let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
        create(cluster.sandbox(), &PODS, "child", &[(&owner, true)]);
        if !is_broken_first {
            cluster.settle().await;
        }
        break_pod(cluster.sandbox(), "child");
        cluster.settle().await;
        delete(&cluster, "owner", policy).await;
        left(&cluster, &[]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dependent_that_never_could_be_decoded_goes_when_its_owner_does_not_exist() {
    let environment = environment().prepare(|sandbox| {
        create_in(sandbox, &PODS, "shop", "child", &[Made::ghost()]);
        break_pod(sandbox, "child");
    });
    let cluster = start(environment).await;
    left(&cluster, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn dependents_that_cannot_be_decoded_are_orphaned() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    undecodable_pod(&cluster, "child", &owner, true);
    cluster.settle().await;
    delete(&cluster, "owner", "Orphan").await;
    let is_orphaning = |path: &str, method: &str| method == "PATCH" && path.ends_with("/pods/child");
    cluster
        .eventually("the child is orphaned", |_| {
            let requests = cluster.requests_of("generic-garbage-collector");
            requests.iter().any(|request| is_orphaning(&request.path, &request.method))
        })
        .await;
    repair_pod(cluster.sandbox(), "child");
    left(&cluster, &["child"]).await;
    assert_eq!(owners(cluster.sandbox(), &PODS, "child"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_cannot_be_decoded_keeps_its_dependents_and_waits_for_them() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &PODS, "owner", &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, true)]);
    hold(cluster.sandbox(), &CONFIG_MAPS, "child");
    break_pod(cluster.sandbox(), "owner");
    let both = |sandbox: &_| names(sandbox) == ["child", "owner"];
    cluster.consistently("both stay", 5 * MINUTE, both).await;

    let body = json!({ "propagationPolicy": "Foreground", "gracePeriodSeconds": 0 }).to_string().into_bytes();
    let request = kcm_framework::http::Request::delete("/api/v1/namespaces/shop/pods/owner")
        .header("content-type", "application/json")
        .body(body)
        .expect("the request is valid");
    cluster.sandbox().client().request_text(request).await.expect("the object is there");
    let child = || cluster.sandbox().get(&CONFIG_MAPS, &key("child")).expect("its finalizer holds it");
    cluster.eventually("the child is deleted", |_| child()["metadata"].get("deletionTimestamp").is_some()).await;
    cluster.consistently("the owner waits", 5 * MINUTE, both).await;
    release(cluster.sandbox(), &CONFIG_MAPS, "child");
    repair_pod(cluster.sandbox(), "owner");
    left(&cluster, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_metadata_cannot_be_decoded_any_more_keeps_its_node_until_it_is_deleted() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &PODS, "owner", &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, false)]);
    break_pod(cluster.sandbox(), "owner");
    cluster.settle().await;
    break_metadata(cluster.sandbox(), "owner");
    cluster.consistently("both stay", 5 * MINUTE, |sandbox| names(sandbox) == ["child", "owner"]).await;
    cluster.sandbox().delete_now(&PODS, &key("owner")).expect("it is there");
    left(&cluster, &[]).await;
}
