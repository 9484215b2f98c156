//! Whole service CIDRs on an API server in the process.

use std::time::Duration;

use kcm_framework::api::views::ServiceCidr;
use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, Sandbox, SandboxOptions, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use super::{address_json, cidr_json, now};
use crate::service_cidr::{DESCRIPTOR, IP_ADDRESSES};

pub(super) const CIDRS: Resource = ServiceCidr::RESOURCE;
const SECOND: Duration = Duration::from_secs(1);

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).sandbox_options(SandboxOptions { start: now(), ..SandboxOptions::default() })
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[CIDRS, IP_ADDRESSES]).await;
    cluster
}

pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name)
}

pub(super) fn create(sandbox: &Sandbox, name: &str, ranges: &[&str]) {
    let mut cidr = cidr_json(name, ranges);
    cidr["metadata"]["finalizers"] = json!([]);
    sandbox.create(&CIDRS, cidr).expect("the service CIDR must be valid");
}

pub(super) fn get(sandbox: &Sandbox, name: &str) -> Option<Value> {
    sandbox.get(&CIDRS, &key(name))
}

/// The condition, without its time.
pub(super) fn ready(sandbox: &Sandbox, name: &str) -> [Value; 3] {
    let cidr = get(sandbox, name).unwrap_or_default();
    ["status", "reason", "message"].map(|field| cidr["status"]["conditions"][0][field].clone())
}

async fn is_ready(cluster: &TestCluster, name: &str) {
    let holds = |sandbox: &Sandbox| {
        let finalizers = get(sandbox, name).map(|cidr| cidr["metadata"]["finalizers"].clone()).unwrap_or_default();
        ready(sandbox, name)[0] == "True" && finalizers == json!(["networking.k8s.io/service-cidr-finalizer"])
    };
    cluster.eventually(&format!("{name} is ready"), holds).await;
}

fn writes(cluster: &TestCluster) -> usize {
    let requests = cluster.requests_of("service-cidrs-controller");
    requests.iter().filter(|request| request.method != "GET").count()
}

#[tokio::test(start_paused = true)]
async fn a_service_cidr_is_made_ready_once() {
    let cluster = start(environment()).await;
    create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
    is_ready(&cluster, "a").await;
    assert_eq!(ready(cluster.sandbox(), "a")[2], "Kubernetes Service CIDR is ready");
    cluster.settle().await;
    let written = writes(&cluster);
    cluster.kill();
    cluster.advance(600 * SECOND).await;
    assert_eq!(writes(&cluster), written, "nothing is written at rest");
    let managed = get(cluster.sandbox(), "a").unwrap()["metadata"]["managedFields"].clone();
    let managers: Vec<&Value> = managed.as_array().unwrap().iter().map(|entry| &entry["manager"]).collect();
    assert!(managers.contains(&&json!("service-cidr-controller")), "{managers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_one_waits_for_its_addresses_and_ten_seconds() {
    let cluster = start(environment()).await;
    create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
    is_ready(&cluster, "a").await;
    cluster.sandbox().create(&IP_ADDRESSES, address_json("10.100.0.7")).unwrap();
    cluster.sandbox().delete(&CIDRS, &key("a")).unwrap();
    let blocked = |sandbox: &Sandbox| ready(sandbox, "a")[..2] == [json!("False"), json!("Terminating")];
    cluster.eventually("it is blocked", blocked).await;
    cluster.advance(60 * SECOND).await;
    assert!(get(cluster.sandbox(), "a").is_some());
    cluster.sandbox().delete_now(&IP_ADDRESSES, &key("10.100.0.7")).unwrap();
    cluster.eventually("it is gone", |sandbox| get(sandbox, "a").is_none()).await;

    create(cluster.sandbox(), "b", &["10.101.0.0/24"]);
    is_ready(&cluster, "b").await;
    let deleted_at = cluster.sandbox().now();
    cluster.sandbox().delete(&CIDRS, &key("b")).unwrap();
    cluster.eventually("it is gone", |sandbox| get(sandbox, "b").is_none()).await;
    let waited = cluster.sandbox().now().duration_since(deleted_at).as_secs();
    assert!((9..12).contains(&waited), "after {waited} s");
}

#[tokio::test(start_paused = true)]
async fn one_that_contains_a_blocked_one_sets_it_free() {
    let cluster = start(environment()).await;
    create(cluster.sandbox(), "small", &["10.100.0.0/24"]);
    is_ready(&cluster, "small").await;
    cluster.sandbox().create(&IP_ADDRESSES, address_json("10.100.0.7")).unwrap();
    cluster.sandbox().delete(&CIDRS, &key("small")).unwrap();
    cluster.eventually("it is blocked", |sandbox| ready(sandbox, "small")[0] == "False").await;
    create(cluster.sandbox(), "large", &["10.100.0.0/16"]);
    cluster.eventually("it is gone", |sandbox| get(sandbox, "small").is_none()).await;
    is_ready(&cluster, "large").await;
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        cluster.watches(&[CIDRS, IP_ADDRESSES]).await;
        create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
        is_ready(cluster, "a").await;
        cluster.sandbox().create(&IP_ADDRESSES, address_json("10.100.0.7")).unwrap();
        cluster.sandbox().delete(&CIDRS, &key("a")).unwrap();
        cluster.eventually("it is blocked", |sandbox| ready(sandbox, "a")[0] == "False").await;
        cluster.sandbox().delete_now(&IP_ADDRESSES, &key("10.100.0.7")).unwrap();
        cluster.eventually("it is gone", |sandbox| get(sandbox, "a").is_none()).await;
        cluster.settle().await;
    })
    .await;
    assert!(writes >= 4, "finalizer, condition, condition, finalizer: {writes}");
}

#[tokio::test(start_paused = true)]
async fn lost_responses_late_watches_and_a_busy_server_change_nothing() {
    // Finalizer, condition, condition of the blocked deletion, finalizer.
    for number in 0..4 {
        let cluster = start(environment()).await;
        let lost = cluster.sandbox().faults().inject(Fault::on_writes().skip(number).times(1).lose_answer());
        create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
        is_ready(&cluster, "a").await;
        cluster.advance(60 * SECOND).await;
        is_ready(&cluster, "a").await;
        cluster.sandbox().create(&IP_ADDRESSES, address_json("10.100.0.7")).unwrap();
        cluster.sandbox().delete(&CIDRS, &key("a")).unwrap();
        cluster.eventually("it is blocked", |sandbox| ready(sandbox, "a")[0] == "False").await;
        cluster.sandbox().delete_now(&IP_ADDRESSES, &key("10.100.0.7")).unwrap();
        cluster.eventually("it is gone", |sandbox| get(sandbox, "a").is_none()).await;
        cluster.advance(60 * SECOND).await;
        assert_eq!(lost.hits(), 1, "write {number}");
    }

    let cluster = start(environment()).await;
    cluster.sandbox().faults().delay_events(&CIDRS, 60 * SECOND);
    create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
    is_ready(&cluster, "a").await;
    cluster.sandbox().delete(&CIDRS, &key("a")).unwrap();
    cluster.eventually("it is gone", |sandbox| get(sandbox, "a").is_none()).await;

    let cluster = start(environment()).await;
    let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(20).fail(Status::too_many_requests(1));
    cluster.sandbox().faults().inject(busy);
    create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
    is_ready(&cluster, "a").await;
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_is_refused_is_an_event_and_tried_again() {
    let cluster = start(environment()).await;
    let refused = Status::new(403, "Forbidden", "no");
    cluster
        .sandbox()
        .faults()
        .inject(Fault::on(Verb::Patch).resource(CIDRS).subresource("status").times(1).fail(refused));
    create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
    is_ready(&cluster, "a").await;
    let events = cluster.sandbox().list(&kcm_testing::sandbox::EVENTS, None);
    let event = events.iter().find(|event| event["reason"] == "KubernetesServiceCIDRError").expect("it is said");
    assert_eq!(event["message"], "The ServiceCIDR Status can not be set to Ready=True");
    assert_eq!(event["source"]["component"], "service-cidr-controller");
    let _errors = cluster.take_errors();
}

fn events(cluster: &TestCluster) -> Vec<Value> {
    let mut events = cluster.sandbox().list(&kcm_testing::sandbox::EVENTS, None);
    events.retain(|event| event["reason"] == "KubernetesServiceCIDRError");
    events
}

/// Creates `a`, whose first condition takes five seconds to be written; returns when its finalizer is there.
async fn create_while_its_condition_is_written(cluster: &TestCluster) {
    let slow = Fault::on(Verb::Patch).resource(CIDRS).subresource("status").times(1).delay(5 * SECOND);
    cluster.sandbox().faults().inject(slow);
    create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
    let has_finalizer =
        |sandbox: &Sandbox| get(sandbox, "a").is_some_and(|a| a["metadata"]["finalizers"].get(0).is_some());
    cluster.eventually("it has the finalizer", has_finalizer).await;
    cluster.settle().await;
    remove_now(cluster.sandbox());
}

/// Removes `a` whatever finalizer it has.
fn remove_now(sandbox: &Sandbox) {
    sandbox.patch(&CIDRS, &key("a"), &json!({ "metadata": { "finalizers": null } })).unwrap();
    sandbox.delete_now(&CIDRS, &key("a")).unwrap();
    assert_eq!(get(sandbox, "a"), None);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_recreated_while_its_condition_is_written_is_made_ready_without_an_event() {
    let cluster = start(environment()).await;
    create_while_its_condition_is_written(&cluster).await;
    create(cluster.sandbox(), "a", &["10.101.0.0/24"]);
    is_ready(&cluster, "a").await;
    cluster.advance(60 * SECOND).await;
    let refused = cluster.requests_of("service-cidrs-controller").iter().filter(|one| one.status == Some(422)).count();
    assert_eq!((refused, events(&cluster)), (1, Vec::new()), "the uid of the first one is refused");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_gone_when_it_is_written_to_is_no_error() {
    let cluster = start(environment()).await;
    create_while_its_condition_is_written(&cluster).await;
    cluster.advance(60 * SECOND).await;
    assert_eq!(events(&cluster), Vec::<Value>::new());

    // The finalizer is written to one that the cache holds still.
    cluster.sandbox().clear_requests();
    let slow = Fault::on(Verb::Patch).resource(CIDRS).times(1).delay(5 * SECOND);
    cluster.sandbox().faults().inject(slow);
    cluster.sandbox().faults().delay_events(&CIDRS, 20 * SECOND);
    create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
    cluster.advance(21 * SECOND).await;
    remove_now(cluster.sandbox());
    cluster.advance(60 * SECOND).await;
    let requests = cluster.requests_of("service-cidrs-controller");
    let sent: Vec<_> = requests.iter().filter(|one| one.method == "PATCH").collect();
    assert!(sent.iter().all(|request| request.status == Some(404)), "{sent:?}");
    assert_eq!(sent.len(), 2, "the finalizer and the condition, each once: {sent:?}");
}

#[tokio::test(start_paused = true)]
async fn changes_of_others_are_undone_where_they_concern_the_controller_alone() {
    let cluster = start(environment()).await;
    create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
    is_ready(&cluster, "a").await;
    let status = |conditions: Value| json!({ "status": { "conditions": conditions } });
    cluster.sandbox().patch(&CIDRS, &key("a"), &json!({ "metadata": { "finalizers": null } })).unwrap();
    is_ready(&cluster, "a").await;
    cluster.sandbox().patch_status(&CIDRS, &key("a"), &status(json!([]))).unwrap();
    is_ready(&cluster, "a").await;
    let condition = |type_: &str, status: &str| {
        json!({
            "type": type_, "status": status, "reason": "Person", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let other = condition("example.com/Checked", "False");
    let foreign = status(json!([condition("Ready", "False"), other]));
    cluster.sandbox().patch_status(&CIDRS, &key("a"), &foreign).unwrap();
    is_ready(&cluster, "a").await;
    cluster.sandbox().patch(&CIDRS, &key("a"), &json!({ "metadata": { "finalizers": ["example.com/hold"] } })).unwrap();
    let finalizers = |sandbox: &Sandbox| get(sandbox, "a").unwrap()["metadata"]["finalizers"].clone();
    let both = json!(["example.com/hold", "networking.k8s.io/service-cidr-finalizer"]);
    cluster.eventually("it has both finalizers", |sandbox| finalizers(sandbox) == both).await;
    cluster.sandbox().delete(&CIDRS, &key("a")).unwrap();
    cluster.eventually("it is released", |sandbox| finalizers(sandbox) == json!(["example.com/hold"])).await;
    assert_eq!(get(cluster.sandbox(), "a").unwrap()["status"]["conditions"][1], other);
}

#[tokio::test(start_paused = true)]
async fn addresses_that_the_cache_learns_of_late_block_a_deletion() {
    let cluster = start(environment()).await;
    create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
    is_ready(&cluster, "a").await;
    // It is late, but not later than every API server may be.
    cluster.sandbox().faults().delay_events(&IP_ADDRESSES, 8 * SECOND);
    cluster.sandbox().delete(&CIDRS, &key("a")).unwrap();
    cluster.settle().await;
    cluster.sandbox().create(&IP_ADDRESSES, address_json("10.100.0.7")).unwrap();
    cluster.eventually("it is blocked", |sandbox| ready(sandbox, "a")[0] == "False").await;
    cluster.advance(60 * SECOND).await;
    assert!(get(cluster.sandbox(), "a").is_some());
    cluster.sandbox().delete_now(&IP_ADDRESSES, &key("10.100.0.7")).unwrap();
    cluster.eventually("it is gone", |sandbox| get(sandbox, "a").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_cannot_be_decoded_keeps_its_range() {
    let cluster = start(environment().allow_error("Object cannot be decoded")).await;
    create(cluster.sandbox(), "a", &["10.100.0.0/24"]);
    is_ready(&cluster, "a").await;
    let address = key("10.100.0.7");
    cluster.sandbox().create(&IP_ADDRESSES, address_json("10.100.0.7")).unwrap();
    let labels = json!({ "metadata": { "labels": { "a": 5 } } });
    DirectClient::new(cluster.sandbox()).merge(&IP_ADDRESSES, &address, None, &labels).unwrap();
    cluster.settle().await;
    cluster.sandbox().delete(&CIDRS, &key("a")).unwrap();
    cluster.advance(60 * SECOND).await;
    assert_eq!(ready(cluster.sandbox(), "a")[..2], [json!("False"), json!("Terminating")]);
    cluster.sandbox().delete_now(&IP_ADDRESSES, &address).unwrap();
    cluster.eventually("it is gone", |sandbox| get(sandbox, "a").is_none()).await;
}
