//! Groups on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::{Fault, PODS, Sandbox, SandboxOptions, Status, Verb};
use kcm_testing::{START, TestCluster, TestEnvironment, kill_after_each_write, passing_faults};
use serde_json::{Value, json};

use crate::podgroup_protection::DESCRIPTOR;
use crate::podgroup_protection::plan::FINALIZER;
use crate::podgroup_protection::view::PodGroup;

const GROUPS: Resource = PodGroup::RESOURCE;
const ACCOUNT: &str = "podgroup-protection-controller";

fn environment() -> TestEnvironment {
    let options = SandboxOptions { start: START, seed: 1, beta_apis: true, ..SandboxOptions::default() };
    TestEnvironment::new([DESCRIPTOR])
        .sandbox_options(options)
        .arguments(&["--feature-gates=GenericWorkload=true"])
        .namespace("shop")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name.to_owned())
}

fn create_group(sandbox: &Sandbox) {
    let group = json!({
        "metadata": { "namespace": "shop", "name": "g", "labels": { "a": "b" } },
        "spec": { "schedulingPolicy": { "basic": {} } },
    });
    let created = sandbox.create(&GROUPS, group).expect("the group must be valid");
    assert_eq!(created["metadata"]["finalizers"], json!([FINALIZER]), "the API server protects it");
}

fn create_pod(sandbox: &Sandbox, name: &str) {
    let pod = json!({
        "metadata": { "namespace": "shop", "name": name },
        "spec": {
            "schedulingGroup": { "podGroupName": "g" },
            "containers": [{ "name": "main", "image": "image" }],
        },
    });
    sandbox.create(&PODS, pod).expect("the pod must be valid");
}

fn exists(sandbox: &Sandbox) -> bool {
    sandbox.get(&GROUPS, &key("g")).is_some()
}

async fn stays(cluster: &TestCluster) {
    cluster.consistently("the group stays", Duration::from_secs(30), exists).await;
}

async fn goes(cluster: &TestCluster) {
    cluster.eventually("the group is deleted", |sandbox| !exists(sandbox)).await;
}

/// A group with two pods is deleted; one of them ends, the other is deleted.
async fn life(cluster: &TestCluster) {
    cluster.watches(&[GROUPS, PODS]).await;
    let sandbox = cluster.sandbox();
    create_group(sandbox);
    create_pod(sandbox, "a");
    create_pod(sandbox, "b");
    cluster.settle().await;
    sandbox.delete(&GROUPS, &key("g")).unwrap();
    stays(cluster).await;
    sandbox.patch_status(&PODS, &key("a"), &json!({ "status": { "phase": "Succeeded" } })).unwrap();
    stays(cluster).await;
    sandbox.delete_now(&PODS, &key("b")).unwrap();
    goes(cluster).await;
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn s94_a_group_stays_while_a_pod_of_it_is_active() {
    let cluster = environment().start().await;
    life(&cluster).await;
    let requests = cluster.requests_of(ACCOUNT);
    let lines: Vec<_> = requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect();
    assert_eq!(lines, ["PUT /apis/scheduling.k8s.io/v1beta1/namespaces/shop/podgroups/g"], "upstream's role suffices");
    let body = &cluster.bodies_of(ACCOUNT, "PUT")[0];
    assert!(body["metadata"]["resourceVersion"].is_string());
    assert_eq!((&body["metadata"]["labels"], &body["metadata"]["finalizers"]), (&json!({ "a": "b" }), &json!([])));
    cluster.advance(Duration::from_mins(30)).await;
    assert_eq!(cluster.requests_of(ACCOUNT).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn b23_a_pod_that_the_cache_shows_within_a_second_keeps_the_group() {
    let cluster = environment().start().await;
    cluster.watches(&[GROUPS, PODS]).await;
    create_group(cluster.sandbox());
    cluster.settle().await;
    cluster.sandbox().faults().delay_events(&PODS, Duration::from_millis(800));
    create_pod(cluster.sandbox(), "a");
    cluster.sandbox().delete(&GROUPS, &key("g")).unwrap();
    stays(&cluster).await;
    assert!(cluster.requests_of(ACCOUNT).is_empty());
    cluster.sandbox().patch_status(&PODS, &key("a"), &json!({ "status": { "phase": "Failed" } })).unwrap();
    goes(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn s94_a_group_without_pods_is_deleted_and_other_finalizers_stay() {
    let cluster = environment().start().await;
    cluster.watches(&[GROUPS, PODS]).await;
    create_group(cluster.sandbox());
    let more = json!({ "metadata": { "finalizers": ["example.com/a", FINALIZER, "example.com/b"] } });
    cluster.sandbox().patch(&GROUPS, &key("g"), &more).unwrap();
    cluster.sandbox().delete(&GROUPS, &key("g")).unwrap();
    let finalizers =
        |sandbox: &Sandbox| sandbox.get(&GROUPS, &key("g")).unwrap_or_default()["metadata"]["finalizers"].clone();
    let expected = json!(["example.com/a", "example.com/b"]);
    cluster.eventually("its finalizer goes", |sandbox| finalizers(sandbox) == expected).await;
}

#[tokio::test(start_paused = true)]
async fn t52_pods_of_an_earlier_group_of_the_name_hold_its_successor() {
    let cluster = environment().start().await;
    cluster.watches(&[GROUPS, PODS]).await;
    create_pod(cluster.sandbox(), "a");
    create_group(cluster.sandbox());
    cluster.settle().await;
    cluster.sandbox().delete(&GROUPS, &key("g")).unwrap();
    stays(&cluster).await;
    cluster.sandbox().delete_now(&PODS, &key("a")).unwrap();
    goes(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_is_added_behind_the_cache_is_not_lost() {
    let cluster = environment().start().await;
    cluster.watches(&[GROUPS, PODS]).await;
    create_group(cluster.sandbox());
    cluster.sandbox().delete(&GROUPS, &key("g")).unwrap();
    cluster.advance(Duration::from_millis(500)).await;
    cluster.sandbox().faults().hold_watches(&GROUPS);
    let labels = json!({ "metadata": { "labels": { "later": "yes" } } });
    cluster.sandbox().patch(&GROUPS, &key("g"), &labels).unwrap();
    cluster.advance(Duration::from_secs(10)).await;
    assert!(exists(cluster.sandbox()), "the update of an old version is a conflict");
    cluster.sandbox().faults().release_watches(&GROUPS);
    goes(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn an_update_that_is_refused_is_tried_again() {
    let cluster = environment().allow_error("Reconcile failed").start().await;
    cluster.watches(&[GROUPS, PODS]).await;
    let refused = Status::new(403, "Forbidden", "not yet");
    cluster.sandbox().faults().inject(Fault::on(Verb::Update).resource(GROUPS).times(2).fail(refused));
    create_group(cluster.sandbox());
    cluster.sandbox().delete(&GROUPS, &key("g")).unwrap();
    cluster.advance(Duration::from_mins(10)).await;
    assert!(!exists(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn late_watches_of_groups_lead_to_no_second_update() {
    let cluster = environment().start().await;
    cluster.watches(&[GROUPS, PODS]).await;
    cluster.sandbox().faults().delay_events(&GROUPS, Duration::from_secs(20));
    create_group(cluster.sandbox());
    cluster.sandbox().delete(&GROUPS, &key("g")).unwrap();
    cluster.advance(Duration::from_mins(3)).await;
    assert!(!exists(cluster.sandbox()));
    assert_eq!(cluster.writes_of(ACCOUNT).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_nothing_is_done() {
    let options = SandboxOptions { start: START, seed: 1, beta_apis: true, ..SandboxOptions::default() };
    let cluster = TestEnvironment::new([DESCRIPTOR]).sandbox_options(options).namespace("shop").start().await;
    create_group(cluster.sandbox());
    cluster.sandbox().delete(&GROUPS, &key("g")).unwrap();
    stays(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    assert_eq!(kill_after_each_write(environment, life).await, 1);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault);
        life(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_survive_the_update() {
    let options = SandboxOptions {
        start: START,
        seed: 1,
        beta_apis: true,
        keep_unknown_fields: true,
        ..SandboxOptions::default()
    };
    let cluster = environment().sandbox_options(options).start().await;
    cluster.watches(&[GROUPS, PODS]).await;
    let group = json!({
        "metadata": { "namespace": "shop", "name": "g" },
        "spec": { "schedulingPolicy": { "basic": {} }, "later": { "a": 1 } },
    });
    cluster.sandbox().create(&GROUPS, group).unwrap();
    cluster.sandbox().delete(&GROUPS, &key("g")).unwrap();
    goes(&cluster).await;
    let body: &Value = &cluster.bodies_of(ACCOUNT, "PUT")[0];
    assert_eq!(body["spec"]["later"], json!({ "a": 1 }));
}
