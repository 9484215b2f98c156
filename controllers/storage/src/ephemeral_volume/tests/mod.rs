//! Claims of ephemeral volumes on an API server in the process.

use std::time::Duration;

use kcm_framework::api::views::PersistentVolumeClaim;
use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::{PODS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use crate::ephemeral_volume::DESCRIPTOR;
use crate::tests::faults::passing_faults;

const CLAIMS: Resource = PersistentVolumeClaim::RESOURCE;
const IDENTITY: &str = "ephemeral-volume-controller";

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

fn claim_spec() -> Value {
    json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } })
}

/// Creates the Pod `web` with the ephemeral volumes `a` and `b`, and returns its uid.
fn create_pod(sandbox: &Sandbox) -> Value {
    let volume = |name: &str| {
        let metadata = json!({ "labels": { "app": "web" }, "annotations": { "note": name } });
        json!({ "name": name, "ephemeral": { "volumeClaimTemplate": { "metadata": metadata, "spec": claim_spec() } } })
    };
    let containers = json!([{ "name": "main", "image": "example/main:1" }]);
    let other = json!({ "name": "c", "persistentVolumeClaim": { "claimName": "other" } });
    let spec = json!({ "containers": containers, "volumes": [volume("a"), other, volume("b")] });
    let pod = json!({ "metadata": { "namespace": "shop", "name": "web" }, "spec": spec });
    sandbox.create(&PODS, pod).expect("the pod must be valid")["metadata"]["uid"].clone()
}

/// Deletes a claim, which the API server protects with a finalizer.
fn delete_claim(sandbox: &Sandbox, name: &str) {
    sandbox.patch(&CLAIMS, &key(name), &json!({ "metadata": { "finalizers": null } })).expect("the claim is there");
    sandbox.delete_now(&CLAIMS, &key(name)).expect("the claim is there");
}

fn owner(sandbox: &Sandbox, claim: &str) -> Value {
    sandbox.get(&CLAIMS, &key(claim)).unwrap_or_default()["metadata"]["ownerReferences"][0]["uid"].clone()
}

async fn life(cluster: &TestCluster) {
    cluster.watches(&[CLAIMS, PODS]).await;
    let uid = create_pod(cluster.sandbox());
    let have_claims = |sandbox: &Sandbox| ["web-a", "web-b"].iter().all(|claim| owner(sandbox, claim) == uid);
    cluster.eventually("it has its claims", have_claims).await;
    delete_claim(cluster.sandbox(), "web-a");
    cluster.eventually("a deleted claim is created again", have_claims).await;
    assert_eq!(cluster.sandbox().list(&CLAIMS, Some("shop")).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn ev_1_to_4_a_pod_gets_its_claims_with_everything_that_the_template_has() {
    let cluster = start(environment()).await;
    life(&cluster).await;
    let claim = cluster.sandbox().get(&CLAIMS, &key("web-b")).unwrap();
    assert_eq!(claim["metadata"]["labels"], json!({ "app": "web" }));
    assert_eq!(claim["metadata"]["annotations"]["note"], "b");
    assert_eq!(claim["spec"]["resources"], claim_spec()["resources"]);
    let reference = &claim["metadata"]["ownerReferences"][0];
    assert_eq!((&reference["kind"], &reference["name"]), (&json!("Pod"), &json!("web")));
    assert_eq!((&reference["controller"], &reference["blockOwnerDeletion"]), (&json!(true), &json!(true)));
    let metrics = cluster.metrics();
    assert!(metrics.contains("ephemeral_volume_controller_create_total 3"), "{metrics}");
    assert!(metrics.contains("ephemeral_volume_controller_create_failures_total 0"), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    assert_eq!(kill_after_each_write(environment, life).await, 3);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault.resource(CLAIMS));
        life(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn ev_3_a_claim_of_the_name_that_the_pod_does_not_control_is_left_alone() {
    let cluster = start(environment()).await;
    let foreign = json!({ "metadata": { "namespace": "shop", "name": "web-a" }, "spec": claim_spec() });
    cluster.sandbox().create(&CLAIMS, foreign).unwrap();
    let before = cluster.sandbox().get(&CLAIMS, &key("web-a"));
    let uid = create_pod(cluster.sandbox());
    cluster.advance(Duration::from_mins(1)).await;
    assert_eq!(cluster.sandbox().get(&CLAIMS, &key("web-a")), before);
    assert!(cluster.sandbox().get(&CLAIMS, &key("web-b")).is_none(), "the first error ends the reconcile");
    let events = cluster.events_of("ephemeral_volume");
    let expected = "ephemeral volume a: PVC shop/web-a was not created for pod shop/web (pod is not owner)";
    assert!(events.iter().any(|event| event.contains("FailedBinding") && event.contains(expected)), "{events:?}");
    delete_claim(cluster.sandbox(), "web-a");
    cluster.eventually("it has its claims", |sandbox| owner(sandbox, "web-b") == uid).await;
}

#[tokio::test(start_paused = true)]
async fn b_18_a_claim_that_the_cache_does_not_show_yet_is_no_error_if_it_is_the_pods() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().hold_watches(&CLAIMS);
    let uid = create_pod(cluster.sandbox());
    cluster.eventually("it has a claim", |sandbox| owner(sandbox, "web-a") == uid).await;
    cluster.kill();
    cluster.eventually("it has its claims", |sandbox| owner(sandbox, "web-b") == uid).await;
    assert_eq!(cluster.events_of("ephemeral_volume"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn ev_2_a_terminating_pod_gets_no_claim() {
    let cluster = start(environment()).await;
    let volume = json!({ "name": "a", "ephemeral": { "volumeClaimTemplate": { "spec": claim_spec() } } });
    let containers = json!([{ "name": "main", "image": "example/main:1" }]);
    let pod = json!({
        "metadata": { "namespace": "shop", "name": "web", "finalizers": ["example.com/wait"] },
        "spec": { "containers": containers, "volumes": [volume] },
    });
    cluster.sandbox().faults().hold_watches(&PODS);
    cluster.sandbox().create(&PODS, pod).unwrap();
    cluster.sandbox().delete_now(&PODS, &key("web")).unwrap();
    cluster.sandbox().faults().release_watches(&PODS);
    cluster.consistently("no claim", Duration::from_mins(1), |sandbox| sandbox.list(&CLAIMS, None).is_empty()).await;
    assert!(cluster.writes_of(IDENTITY).is_empty());
}
