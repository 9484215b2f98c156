//! Requests on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::sandbox::{Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write, passing_faults};
use serde_json::{Value, json};

use super::{request, slice};
use crate::resourcepoolstatusrequest::DESCRIPTOR;
use crate::tests::{CLAIMS, Roles, allocate, beta_apis, claim_spec, fits_role};

const REQUESTS: Resource =
    Resource::cluster_scoped("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests", "ResourcePoolStatusRequest");
const SLICES: Resource = Resource::cluster_scoped("resource.k8s.io", "v1", "resourceslices", "ResourceSlice");
/// The name of its client.
const NAME: &str = "resourcepoolstatusrequest-controller";
const MINUTE: Duration = Duration::from_mins(1);

fn global(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name)
}

fn publish(sandbox: &Sandbox, name: &str, count: i64) {
    let devices = json!([{ "name": format!("{name}-0") }, { "name": format!("{name}-1") }]);
    sandbox.create(&SLICES, slice(name, "a", 1, count, &devices)).expect("the slice must be valid");
}

fn create_request(sandbox: &Sandbox) {
    sandbox.create(&REQUESTS, request(&json!({}))).expect("the request must be valid");
}

/// Total and allocated devices of the first pool of the status.
fn counts(sandbox: &Sandbox) -> Option<[u64; 2]> {
    let request = sandbox.get(&REQUESTS, &global("r"))?;
    let pool = &request["status"]["pools"][0];
    Some([pool["totalDevices"].as_u64()?, pool["allocatedDevices"].as_u64()?])
}

fn message(sandbox: &Sandbox) -> Value {
    sandbox.get(&REQUESTS, &global("r")).unwrap_or_default()["status"]["conditions"][0]["message"].clone()
}

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR])
        .arguments(&["--feature-gates=DRAResourcePoolStatus=true"])
        .sandbox_options(beta_apis())
        .namespace("shop")
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[REQUESTS, SLICES, CLAIMS]).await;
    cluster
}

fn requests(cluster: &TestCluster) -> Vec<String> {
    cluster.requests_of(NAME).iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

#[tokio::test(start_paused = true)]
async fn s81_a_request_gets_one_status() {
    let cluster = start(environment()).await;
    publish(cluster.sandbox(), "s", 1);
    let claim = json!({ "metadata": { "namespace": "shop", "name": "c" }, "spec": claim_spec() });
    cluster.sandbox().create(&CLAIMS, claim).unwrap();
    allocate(cluster.sandbox(), "c", "s-0", &json!([]), &[]);
    cluster.settle().await;
    create_request(cluster.sandbox());
    cluster.eventually("it has its status", |sandbox| counts(sandbox) == Some([2, 1])).await;
    assert_eq!(message(cluster.sandbox()), "Calculated status for 1 pools");
    publish(cluster.sandbox(), "t", 1);
    cluster.advance(10 * MINUTE).await;
    assert_eq!(counts(cluster.sandbox()), Some([2, 1]), "it is never computed again");
    let path = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests/r/status";
    assert_eq!(requests(&cluster), ["GET /apis/resource.k8s.io/v1/resourceslices".to_owned(), format!("PATCH {path}")]);
    let body = &cluster.bodies_of(NAME, "PATCH")[0];
    assert!(body["metadata"]["resourceVersion"].is_string() && body["metadata"]["uid"].is_string(), "{body}");
    fits_role(&cluster, NAME, Roles::Gated);
    let metrics = cluster.metrics();
    for line in [
        "resourcepoolstatusrequest_controller_requests_processed_total{driver_name=\"gpu.example.com\"} 1",
        "resourcepoolstatusrequest_controller_request_processing_duration_seconds_count{driver_name=\"gpu.example.com\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn t50_a_request_shows_slices_that_the_cache_does_not_show_yet() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().hold_watches(&SLICES);
    publish(cluster.sandbox(), "s", 1);
    create_request(cluster.sandbox());
    cluster.eventually("it has its status", |sandbox| counts(sandbox) == Some([2, 0])).await;
    cluster.sandbox().faults().release_watches(&SLICES);
}

#[tokio::test(start_paused = true)]
async fn t47_a_request_for_an_incomplete_pool_waits_for_its_slices() {
    let cluster = start(environment()).await;
    publish(cluster.sandbox(), "s", 2);
    create_request(cluster.sandbox());
    cluster.advance(10 * MINUTE).await;
    assert!(cluster.writes_of(NAME).is_empty());
    publish(cluster.sandbox(), "t", 2);
    cluster.settle().await;
    assert_eq!(counts(cluster.sandbox()), Some([4, 0]));
}

#[tokio::test(start_paused = true)]
async fn s90_requests_expire() {
    let cluster = start(environment()).await;
    publish(cluster.sandbox(), "s", 1);
    create_request(cluster.sandbox());
    cluster.eventually("it has its status", |sandbox| counts(sandbox).is_some()).await;
    let stored = cluster.sandbox().get(&REQUESTS, &global("r")).unwrap();
    cluster.advance(59 * MINUTE).await;
    assert!(counts(cluster.sandbox()).is_some());
    cluster.advance(2 * MINUTE).await;
    assert!(cluster.sandbox().get(&REQUESTS, &global("r")).is_none());
    assert_eq!(cluster.bodies_of(NAME, "DELETE")[0]["preconditions"], json!({ "uid": stored["metadata"]["uid"] }));
    fits_role(&cluster, NAME, Roles::Gated);
}

#[tokio::test(start_paused = true)]
async fn s90_a_request_that_waits_expires_after_a_day() {
    let cluster = start(environment()).await;
    publish(cluster.sandbox(), "s", 2);
    create_request(cluster.sandbox());
    cluster.advance(Duration::from_mins(24 * 60 - 1)).await;
    assert_eq!(cluster.sandbox().list(&REQUESTS, None).len(), 1);
    cluster.advance(2 * MINUTE).await;
    assert!(cluster.sandbox().list(&REQUESTS, None).is_empty());
    assert!(cluster.bodies_of(NAME, "PATCH").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_expired_before_the_start_is_deleted() {
    let cluster = start(environment().prepare(|sandbox| {
        create_request(sandbox);
        let condition = json!({
            "type": "Complete", "status": "True", "reason": "CalculationComplete", "message": "",
            "lastTransitionTime": "2026-01-02T01:00:00Z",
        });
        let status = json!({ "status": { "poolCount": 0, "conditions": [condition] } });
        sandbox.patch_status(&REQUESTS, &global("r"), &status).expect("the status must be valid");
    }))
    .await;
    cluster.eventually("it is deleted", |sandbox| sandbox.list(&REQUESTS, None).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn s91_a_status_that_is_refused_counts_as_an_error_and_is_retried() {
    let cluster = start(environment()).await;
    let refused = Status::new(500, "InternalError", "etcd is slow");
    cluster.sandbox().faults().inject(Fault::on(Verb::Patch).resource(REQUESTS).times(20).fail(refused));
    publish(cluster.sandbox(), "s", 1);
    create_request(cluster.sandbox());
    cluster.eventually("it has its status", |sandbox| counts(sandbox).is_some()).await;
    let metrics = cluster.metrics();
    let errors =
        "resourcepoolstatusrequest_controller_request_processing_errors_total{driver_name=\"gpu.example.com\"}";
    assert!(metrics.lines().any(|line| line.starts_with(errors)), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_request_recreated_behind_the_cache_gets_a_status_of_its_own() {
    let cluster = start(environment()).await;
    publish(cluster.sandbox(), "s", 2);
    create_request(cluster.sandbox());
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&REQUESTS);
    cluster.sandbox().delete_now(&REQUESTS, &global("r")).unwrap();
    create_request(cluster.sandbox());
    publish(cluster.sandbox(), "t", 2);
    cluster.advance(MINUTE).await;
    assert_eq!(counts(cluster.sandbox()), None);
    cluster.sandbox().faults().release_watches(&REQUESTS);
    cluster.eventually("it has its status", |sandbox| counts(sandbox) == Some([4, 0])).await;
}

/// A request gets its status and expires.
async fn life(cluster: &TestCluster) {
    cluster.eventually("it has its status", |sandbox| counts(sandbox).is_some()).await;
    cluster.advance(60 * MINUTE).await;
    cluster.eventually("it is deleted", |sandbox| sandbox.list(&REQUESTS, None).is_empty()).await;
}

fn with_request() -> TestEnvironment {
    environment().prepare(|sandbox| {
        publish(sandbox, "s", 1);
        create_request(sandbox);
    })
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    assert_eq!(kill_after_each_write(with_request, life).await, 2);
}

#[tokio::test(start_paused = true)]
async fn lost_responses_refusals_and_late_watches_change_nothing() {
    for fault in passing_faults() {
        let cluster = start(with_request().prepare(move |sandbox| {
            sandbox.faults().inject(fault);
            sandbox.faults().delay_events(&REQUESTS, Duration::from_secs(30));
        }))
        .await;
        life(&cluster).await;
    }
}
