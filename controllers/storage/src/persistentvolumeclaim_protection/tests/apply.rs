//! Claims and Pods on an API server in the process.

use std::time::Duration;

use kcm_framework::api::views::PersistentVolumeClaim;
use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{PODS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use crate::persistentvolumeclaim_protection::DESCRIPTOR;
use crate::persistentvolumeclaim_protection::plan::FINALIZER;
use crate::tests::faults::passing_faults;

const CLAIMS: Resource = PersistentVolumeClaim::RESOURCE;

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop")
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[CLAIMS, PODS]).await;
    cluster
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name.to_owned())
}

fn create_claim(sandbox: &Sandbox, name: &str) {
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    let claim = json!({ "metadata": { "namespace": "shop", "name": name }, "spec": spec });
    sandbox.create(&CLAIMS, claim).expect("the claim must be valid");
    sandbox.patch_status(&CLAIMS, &key(name), &json!({ "status": { "phase": "Bound" } })).expect("it must be there");
}

fn create_pod(sandbox: &Sandbox, name: &str, claim: &str) {
    let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": claim } }]);
    let containers = json!([{ "name": "main", "image": "example/main:1" }]);
    let spec = json!({ "nodeName": "n1", "containers": containers, "volumes": volumes });
    sandbox
        .create(&PODS, json!({ "metadata": { "namespace": "shop", "name": name }, "spec": spec }))
        .expect("the pod must be valid");
}

fn is_protected(sandbox: &Sandbox, name: &str) -> bool {
    let claim = sandbox.get(&CLAIMS, &key(name)).unwrap_or_default();
    claim["metadata"]["finalizers"].as_array().is_some_and(|all| all.contains(&json!(FINALIZER)))
}

fn unused(sandbox: &Sandbox, name: &str) -> Value {
    let claim = sandbox.get(&CLAIMS, &key(name)).unwrap_or_default();
    let conditions = claim["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions
        .iter()
        .find(|condition| condition["type"] == "Unused")
        .map_or(Value::Null, |found| found["status"].clone())
}

async fn life(cluster: &TestCluster) {
    cluster.watches(&[CLAIMS, PODS]).await;
    create_claim(cluster.sandbox(), "data");
    // The API server protects new claims itself.
    cluster.sandbox().patch(&CLAIMS, &key("data"), &json!({ "metadata": { "finalizers": null } })).unwrap();
    cluster
        .eventually("the claim is protected and unused", |sandbox| {
            is_protected(sandbox, "data") && unused(sandbox, "data") == "True"
        })
        .await;
    create_pod(cluster.sandbox(), "web", "data");
    cluster.eventually("the claim is used", |sandbox| unused(sandbox, "data") == "False").await;
    cluster.sandbox().delete(&CLAIMS, &key("data")).unwrap();
    cluster.consistently("the claim stays", Duration::from_mins(2), |sandbox| is_protected(sandbox, "data")).await;
    cluster.sandbox().delete_now(&PODS, &key("web")).unwrap();
    cluster.eventually("the claim is deleted", |sandbox| sandbox.get(&CLAIMS, &key("data")).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_protected_while_a_pod_uses_it_and_says_when_none_does() {
    life(&environment().start().await).await;
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, life).await;
    assert!(writes >= 4, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault.resource(CLAIMS));
        cluster.watches(&[CLAIMS, PODS]).await;
        // The writes of the test are no requests.
        life(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_the_cache_does_not_show_yet_keeps_the_claim() {
    let cluster = start(environment()).await;
    create_claim(cluster.sandbox(), "data");
    cluster.eventually("the claim is unused", |sandbox| unused(sandbox, "data") == "True").await;
    cluster.sandbox().faults().hold_watches(&PODS);
    create_pod(cluster.sandbox(), "web", "data");
    cluster.sandbox().delete(&CLAIMS, &key("data")).unwrap();
    cluster.consistently("the claim stays", Duration::from_mins(1), |sandbox| is_protected(sandbox, "data")).await;
    cluster.sandbox().faults().release_watches(&PODS);
    cluster.settle().await;
    cluster.sandbox().delete_now(&PODS, &key("web")).unwrap();
    cluster.eventually("the claim is deleted", |sandbox| sandbox.get(&CLAIMS, &key("data")).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn claims_that_are_deleted_together_share_a_live_list() {
    let cluster = start(environment()).await;
    let names: Vec<String> = (0..20).map(|number| format!("data-{number}")).collect();
    for name in &names {
        create_claim(cluster.sandbox(), name);
    }
    cluster.eventually("all are unused", |sandbox| names.iter().all(|name| unused(sandbox, name) == "True")).await;
    cluster.settle().await;
    let lists = |cluster: &TestCluster| {
        let requests = cluster.requests_of("pvc-protection-controller");
        requests.iter().filter(|request| request.method == "GET" && request.path.ends_with("/pods")).count()
    };
    let before = lists(&cluster);
    cluster.advance(Duration::from_secs(2)).await;
    for name in &names {
        cluster.sandbox().delete(&CLAIMS, &key(name)).unwrap();
    }
    cluster.eventually("all are deleted", |sandbox| sandbox.list(&CLAIMS, Some("shop")).is_empty()).await;
    assert!(lists(&cluster) - before <= 3, "{} lists", lists(&cluster) - before);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_after_a_shared_list_keeps_no_claim() {
    let cluster = start(environment()).await;
    for name in ["first", "second"] {
        create_claim(cluster.sandbox(), name);
    }
    create_pod(cluster.sandbox(), "web", "second");
    cluster
        .eventually("the conditions are there", |sandbox| {
            unused(sandbox, "first") == "True" && unused(sandbox, "second") == "False"
        })
        .await;
    cluster.advance(Duration::from_secs(2)).await;
    for name in ["first", "second"] {
        cluster.sandbox().delete(&CLAIMS, &key(name)).unwrap();
    }
    // The list for the first claim shows the pod of the second, which is deleted within the second of the list.
    cluster.eventually("the first is deleted", |sandbox| sandbox.get(&CLAIMS, &key("first")).is_none()).await;
    cluster.sandbox().delete_now(&PODS, &key("web")).unwrap();
    cluster.advance(Duration::from_secs(10)).await;
    assert!(cluster.sandbox().get(&CLAIMS, &key("second")).is_none());
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_the_condition_is_left_alone() {
    let cluster = start(environment().arguments(&["--feature-gates=PersistentVolumeClaimUnusedSinceTime=false"])).await;
    create_claim(cluster.sandbox(), "data");
    cluster.eventually("the claim is protected", |sandbox| is_protected(sandbox, "data")).await;
    cluster.consistently("no condition", Duration::from_mins(1), |sandbox| unused(sandbox, "data").is_null()).await;
}

#[tokio::test(start_paused = true)]
async fn while_a_pod_cannot_be_decoded_nothing_becomes_unused_or_is_released() {
    let cluster = start(environment().allow_error("Object cannot be decoded")).await;
    create_claim(cluster.sandbox(), "data");
    create_pod(cluster.sandbox(), "web", "data");
    cluster.eventually("the claim is used", |sandbox| unused(sandbox, "data") == "False").await;
    cluster.settle().await;
    let broken = json!({ "status": { "conditions": [{ "type": 5 }] } });
    DirectClient::new(cluster.sandbox()).merge(&PODS, &key("web"), Some("status"), &broken).unwrap();
    cluster.settle().await;
    cluster.sandbox().delete(&CLAIMS, &key("data")).unwrap();
    cluster.consistently("the claim stays", Duration::from_mins(5), |sandbox| is_protected(sandbox, "data")).await;
    cluster.sandbox().delete_now(&PODS, &key("web")).unwrap();
    cluster.eventually("the claim is deleted", |sandbox| sandbox.get(&CLAIMS, &key("data")).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written() {
    let cluster = start(environment()).await;
    create_claim(cluster.sandbox(), "data");
    create_pod(cluster.sandbox(), "web", "data");
    cluster.eventually("the claim is used", |sandbox| unused(sandbox, "data") == "False").await;
    cluster.settle().await;
    let writes = cluster.writes_of("pvc-protection-controller").len();
    assert!(writes > 0);
    cluster.sandbox().patch(&PODS, &key("web"), &json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
    cluster.advance(Duration::from_hours(30)).await;
    assert_eq!(cluster.writes_of("pvc-protection-controller").len(), writes);
}
