//! Evictions on an API server in the process.

use std::time::Duration;

use jiff::SignedDuration;
use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::sandbox::{Fault, PODS, Sandbox, Status, Verb};
use kcm_testing::{START, TestCluster, TestEnvironment, kill_after_each_write, passing_faults};
use serde_json::{Value, json};

use super::slice;
use crate::device_taint_eviction::DESCRIPTOR;
use crate::tests::{CLAIMS, Roles, allocate, claim_spec, create_pod, fits_role, key, pod};

const RULES: Resource = Resource::cluster_scoped("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule");
pub(super) const SLICES: Resource =
    Resource::cluster_scoped("resource.k8s.io", "v1", "resourceslices", "ResourceSlice");
/// The name of its client and of its events.
const NAME: &str = "device-taint-eviction-controller";
const SECOND: Duration = Duration::from_secs(1);

pub(super) fn global(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name)
}

pub(super) fn taint(effect: &str) -> Value {
    json!({ "key": "broken", "effect": effect, "timeAdded": START })
}

/// Publishes the device `d0`.
pub(super) fn publish(sandbox: &Sandbox, taints: &Value) {
    let mut slice = slice("s", 1, &json!([{ "name": "d0", "taints": taints }, { "name": "d1" }]));
    slice["spec"]["nodeName"] = json!("n");
    sandbox.create(&SLICES, slice).expect("the slice must be valid");
}

pub(super) fn set_taints(sandbox: &Sandbox, taints: &Value) {
    let devices = json!({ "spec": { "devices": [{ "name": "d0", "taints": taints }, { "name": "d1" }] } });
    sandbox.patch(&SLICES, &global("s"), &devices).expect("the slice must exist");
}

fn create_rule(sandbox: &Sandbox, effect: &str) {
    let rule = json!({
        "metadata": { "name": "r" },
        "spec": { "deviceSelector": { "driver": "gpu.example.com" }, "taint": taint(effect) },
    });
    sandbox.create(&RULES, rule).expect("the rule must be valid");
}

/// Creates a Pod that uses an allocated claim of its name.
pub(super) fn create_user(sandbox: &Sandbox, name: &str, device: &str, tolerations: &Value) {
    let claim = json!({ "metadata": { "namespace": "shop", "name": name }, "spec": claim_spec() });
    sandbox.create(&CLAIMS, claim).expect("the claim must be valid");
    let mut pod = pod(name, &json!([{ "name": "gpu", "resourceClaimName": name }]));
    pod["spec"]["nodeName"] = json!("n");
    let uid = create_pod(sandbox, pod);
    allocate(sandbox, name, device, tolerations, &[(name, &uid)]);
}

pub(super) fn tolerates(seconds: i64) -> Value {
    json!([{ "key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds }])
}

/// A published device, and two Pods that use devices.
fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop").prepare(|sandbox| {
        publish(sandbox, &json!([]));
        create_user(sandbox, "a", "d0", &json!([]));
        create_user(sandbox, "b", "d1", &json!([]));
    })
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[CLAIMS, PODS, RULES, SLICES]).await;
    cluster.settle().await;
    cluster
}

fn is_evicted(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.get(&PODS, &key(name)).is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
}

async fn evicted(cluster: &TestCluster, name: &str) {
    cluster.eventually(&format!("{name} is evicted"), |sandbox| is_evicted(sandbox, name)).await;
}

/// Methods and paths of the requests.
fn requests(cluster: &TestCluster) -> Vec<String> {
    cluster.requests_of(NAME).iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

/// Status, reason and message of the condition of the rule.
fn progress(sandbox: &Sandbox) -> [String; 3] {
    let rule = sandbox.get(&RULES, &global("r")).unwrap_or_default();
    let condition = rule["status"]["conditions"][0].clone();
    ["status", "reason", "message"].map(|field| condition[field].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(start_paused = true)]
async fn s62_a_taint_of_a_slice_evicts_with_condition_and_uid() {
    let cluster = start(environment()).await;
    assert!(requests(&cluster).is_empty());
    set_taints(cluster.sandbox(), &json!([taint("NoExecute")]));
    evicted(&cluster, "a").await;
    cluster.advance(60 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "b"));
    let pod = "/api/v1/namespaces/shop/pods/a";
    let slice = "GET /apis/resource.k8s.io/v1/resourceslices/s".to_owned();
    assert_eq!(requests(&cluster), [slice, format!("PATCH {pod}/status"), format!("DELETE {pod}")]);
    let stored = cluster.sandbox().get(&PODS, &key("a")).unwrap();
    let conditions = stored["status"]["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget").unwrap();
    assert_eq!(condition["reason"], "DeletionByDeviceTaintManager");
    let deletion = &cluster.bodies_of(NAME, "DELETE")[0];
    assert_eq!(deletion["preconditions"], json!({ "uid": stored["metadata"]["uid"] }));
    assert_eq!(deletion["gracePeriodSeconds"], Value::Null);
    fits_role(&cluster, NAME, Roles::Default);
    assert_eq!(cluster.events_of(NAME), ["Normal DeviceTaintManagerEviction Marking for deletion"]);
    let metrics = cluster.metrics();
    for line in [
        "device_taint_eviction_controller_pod_deletions_total 1",
        "device_taint_eviction_controller_pod_deletion_duration_seconds_count 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn s63_a_rule_evicts_and_shows_its_progress() {
    let cluster = start(environment()).await;
    create_user(cluster.sandbox(), "later", "d0", &tolerates(3600));
    create_rule(cluster.sandbox(), "NoExecute");
    for name in ["a", "b"] {
        evicted(&cluster, name).await;
    }
    cluster.advance(30 * SECOND).await;
    let message = "1 pod needs to be evicted in 1 namespace. 2 pods evicted since starting the controller.";
    assert_eq!(progress(cluster.sandbox()), ["True", "PodsPendingEviction", message]);
    cluster.advance(3600 * SECOND).await;
    assert!(is_evicted(cluster.sandbox(), "later"));
    let message = "3 pods evicted since starting the controller.";
    assert_eq!(progress(cluster.sandbox()), ["False", "Completed", message]);
    fits_role(&cluster, NAME, Roles::Default);
    let stored = cluster.sandbox().get(&RULES, &global("r")).unwrap();
    let managers = stored["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|manager| manager["manager"] == NAME && manager["subresource"] == "status"));
    // O5: a takeover at rest writes nothing.
    let before = cluster.writes_of(NAME).len();
    cluster.kill();
    cluster.advance(120 * SECOND).await;
    assert_eq!(cluster.writes_of(NAME).len(), before);
}

#[tokio::test(start_paused = true)]
async fn s65_a_rule_without_effect_shows_what_it_would_do_once() {
    let cluster = start(environment()).await;
    create_rule(cluster.sandbox(), "None");
    cluster.eventually("it is shown", |sandbox| progress(sandbox)[1] == "NoEffect").await;
    let shown = progress(cluster.sandbox());
    let numbers =
        "2 published devices selected. 2 allocated devices selected. 2 pods would be evicted in 1 namespace if";
    assert!(shown[2].starts_with(numbers), "{shown:?}");
    create_user(cluster.sandbox(), "c", "d0", &json!([]));
    cluster.advance(60 * SECOND).await;
    assert_eq!(progress(cluster.sandbox()), shown);
    let evict = json!({ "spec": { "taint": { "effect": "NoExecute" } } });
    cluster.sandbox().patch(&RULES, &global("r"), &evict).unwrap();
    evicted(&cluster, "c").await;
    cluster.advance(30 * SECOND).await;
    assert_eq!(progress(cluster.sandbox())[1], "Completed");
}

#[tokio::test(start_paused = true)]
async fn s61_a_removed_taint_cancels_an_eviction() {
    let cluster = start(environment()).await;
    create_user(cluster.sandbox(), "c", "d0", &tolerates(3600));
    cluster.sandbox().delete_now(&PODS, &key("a")).unwrap();
    set_taints(cluster.sandbox(), &json!([taint("NoExecute")]));
    cluster.advance(60 * SECOND).await;
    set_taints(cluster.sandbox(), &json!([]));
    cluster.advance(60 * SECOND).await;
    assert_eq!(cluster.events_of(NAME), ["Normal DeviceTaintManagerEviction Cancelling deletion"]);
    cluster.advance(7200 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "c"));
}

#[tokio::test(start_paused = true)]
async fn a_restart_continues_the_tolerated_time() {
    let cluster = start(environment()).await;
    create_user(cluster.sandbox(), "c", "d0", &tolerates(300));
    set_taints(cluster.sandbox(), &json!([taint("NoExecute")]));
    cluster.advance(200 * SECOND).await;
    cluster.kill();
    let is_due = cluster.sandbox().now() + SignedDuration::from_secs(105);
    evicted(&cluster, "c").await;
    assert!(cluster.sandbox().now() < is_due);
}

#[tokio::test(start_paused = true)]
async fn a_taint_that_was_removed_behind_the_cache_evicts_nothing() {
    let cluster = start(environment()).await;
    create_user(cluster.sandbox(), "c", "d0", &tolerates(60));
    cluster.sandbox().delete_now(&PODS, &key("a")).unwrap();
    set_taints(cluster.sandbox(), &json!([taint("NoExecute")]));
    cluster.advance(30 * SECOND).await;
    cluster.sandbox().faults().hold_watches(&SLICES);
    set_taints(cluster.sandbox(), &json!([]));
    cluster.advance(60 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "c"));
    assert!(cluster.writes_of(NAME).is_empty());
    // A taint that is there again evicts, also if the caches saw nothing.
    set_taints(cluster.sandbox(), &json!([taint("NoExecute")]));
    evicted(&cluster, "c").await;
    cluster.sandbox().faults().release_watches(&SLICES);
}

#[tokio::test(start_paused = true)]
async fn a_pod_recreated_behind_the_cache_is_kept() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().hold_watches(&PODS);
    cluster.sandbox().delete_now(&PODS, &key("a")).unwrap();
    create_pod(cluster.sandbox(), pod("a", &json!([])));
    set_taints(cluster.sandbox(), &json!([taint("NoExecute")]));
    cluster.advance(60 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "a"));
    cluster.sandbox().faults().release_watches(&PODS);
    cluster.advance(60 * SECOND).await;
    assert!(!is_evicted(cluster.sandbox(), "a"));
}

#[tokio::test(start_paused = true)]
async fn a_rule_recreated_under_its_name_is_shown_at_once() {
    let cluster = start(environment()).await;
    create_rule(cluster.sandbox(), "NoSchedule");
    cluster.eventually("it is shown", |sandbox| progress(sandbox)[1] == "OtherEffect").await;
    cluster.sandbox().delete_now(&RULES, &global("r")).unwrap();
    create_rule(cluster.sandbox(), "NoSchedule");
    cluster.eventually("the new one is shown", |sandbox| progress(sandbox)[1] == "OtherEffect").await;
}

#[tokio::test(start_paused = true)]
async fn an_eviction_that_a_webhook_denies_is_retried_until_it_succeeds() {
    let cluster = start(environment()).await;
    let denied = Status::new(403, "Forbidden", "admission webhook \"keeper\" denied the request: not yet");
    cluster.sandbox().faults().inject(Fault::on(Verb::Delete).resource(PODS).times(8).fail(denied));
    set_taints(cluster.sandbox(), &json!([taint("NoExecute")]));
    cluster.eventually("the denials are over", |_| cluster.bodies_of(NAME, "DELETE").len() > 8).await;
    evicted(&cluster, "a").await;
    assert_eq!(cluster.events_of(NAME).len(), 1);
    assert_eq!(cluster.bodies_of(NAME, "PATCH").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn t37_evictions_go_on_while_a_status_fails() {
    let cluster = start(environment()).await;
    let unavailable = Status::new(500, "InternalError", "etcd is slow");
    cluster.sandbox().faults().inject(Fault::on(Verb::Patch).resource(RULES).times(100).fail(unavailable));
    create_rule(cluster.sandbox(), "NoExecute");
    evicted(&cluster, "a").await;
    evicted(&cluster, "b").await;
    cluster.sandbox().faults().clear();
    cluster.eventually("it is shown", |sandbox| progress(sandbox)[1] == "Completed").await;
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_rule_share_live_reads() {
    let cluster = start(environment()).await;
    for number in 0..40 {
        create_user(cluster.sandbox(), &format!("p{number}"), "d0", &json!([]));
    }
    cluster.settle().await;
    create_rule(cluster.sandbox(), "NoExecute");
    let all = |sandbox: &Sandbox| (0..40).all(|number| is_evicted(sandbox, &format!("p{number}")));
    cluster.eventually("all are evicted", all).await;
    let reads = requests(&cluster).iter().filter(|request| request.starts_with("GET")).count();
    assert!(reads <= 5, "{reads} reads");
    cluster.advance(30 * SECOND).await;
    // At once, and after the evictions.
    let statuses = requests(&cluster).iter().filter(|request| request.contains("devicetaintrules/r/status")).count();
    assert!(statuses <= 3, "{statuses} statuses");
}

/// A rule evicts a Pod at once and another one after its time.
async fn life(cluster: &TestCluster) {
    evicted(cluster, "a").await;
    evicted(cluster, "later").await;
    let is_done = |sandbox: &Sandbox| {
        let shown = progress(sandbox);
        shown[0] == "False" && ["Completed", "NotStarted"].contains(&&*shown[1])
    };
    cluster.eventually("the rule is done", is_done).await;
    cluster.advance(30 * SECOND).await;
}

fn with_rule() -> TestEnvironment {
    environment().prepare(|sandbox| {
        create_user(sandbox, "later", "d0", &tolerates(60));
        create_rule(sandbox, "NoExecute");
    })
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(with_rule, life).await;
    assert!((8..=10).contains(&writes), "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn lost_responses_refusals_and_late_watches_change_nothing() {
    for fault in passing_faults() {
        let environment = with_rule().allow_error("Server rejected event");
        let cluster = start(environment.prepare(move |sandbox| {
            sandbox.faults().inject(fault);
            sandbox.faults().delay_events(&PODS, 30 * SECOND);
        }))
        .await;
        life(&cluster).await;
        // Evictions whose response was lost are counted.
        assert_eq!(progress(cluster.sandbox())[2], "3 pods evicted since starting the controller.");
    }
}
