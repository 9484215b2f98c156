//! Whole expansions on an API server in the process.

use std::time::Duration;

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::{EVENTS, Fault, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use crate::persistentvolume_expander::DESCRIPTOR;
use crate::tests::faults::passing_faults;

const CLAIMS: Resource = PersistentVolumeClaim::RESOURCE;
const VOLUMES: Resource = PersistentVolume::RESOURCE;
const ACCOUNT: &str = "expand-controller";
const RESIZER: &str = "volume.kubernetes.io/storage-resizer";
const BEFORE: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop")
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[CLAIMS, VOLUMES]).await;
    cluster
}

fn claim_key() -> ObjectKey {
    ObjectKey::namespaced("shop", "data")
}

fn volume_key() -> ObjectKey {
    ObjectKey::cluster_scoped("pv")
}

/// Creates a claim of 1 Gi and its volume, which are bound to each other.
fn create(sandbox: &Sandbox, source: &Value) {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } }, "volumeName": "pv",
        "storageClassName": "fast",
    });
    let claim = json!({ "metadata": { "namespace": "shop", "name": "data" }, "spec": spec });
    let uid = sandbox.create(&CLAIMS, claim).expect("the claim must be valid")["metadata"]["uid"].clone();
    let mut spec = json!({
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
        "claimRef": { "kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data", "uid": uid },
    });
    for (field, value) in source.as_object().expect("a source is an object") {
        spec[field] = value.clone();
    }
    let volume = json!({ "metadata": { "name": "pv" }, "spec": spec });
    sandbox.create(&VOLUMES, volume).expect("the volume must be valid");
    bind(sandbox, "1Gi");
}

fn bind(sandbox: &Sandbox, capacity: &str) {
    let status = json!({ "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": capacity } });
    sandbox.patch_status(&CLAIMS, &claim_key(), &json!({ "status": status })).expect("the claim must be there");
}

fn grow(sandbox: &Sandbox, to: &str) {
    let spec = json!({ "resources": { "requests": { "storage": to } } });
    sandbox.patch(&CLAIMS, &claim_key(), &json!({ "spec": spec })).expect("the claim may grow");
}

fn claim(sandbox: &Sandbox) -> Value {
    sandbox.get(&CLAIMS, &claim_key()).expect("the claim must be there")
}

fn volume(sandbox: &Sandbox) -> Value {
    sandbox.get(&VOLUMES, &volume_key()).expect("the volume must be there")
}

/// Type, reason and message of the events.
fn events(sandbox: &Sandbox) -> Vec<String> {
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let line = |event: &Value| ["type", "reason", "message"].map(|field| text(event, field)).join(" ");
    sandbox.list(&EVENTS, Some("shop")).iter().map(line).collect()
}

/// Method and last parts of the path of each request that writes a claim or a volume.
fn writes(cluster: &TestCluster) -> Vec<String> {
    let requests = cluster.requests_of(ACCOUNT).into_iter();
    let requests = requests.filter(|request| request.method != "GET" && !request.path.ends_with("/events"));
    requests.map(|request| format!("{} {}", request.method, request.path.rsplit("/v1/").next().unwrap())).collect()
}

/// Operation and status of the series of the histogram of operations of the flex driver, sorted.
fn operations(cluster: &TestCluster) -> Vec<String> {
    let metrics = cluster.metrics();
    let prefix = "storage_operation_duration_seconds_count{volume_plugin=\"vendor/driver\",";
    let series = metrics.lines().filter_map(|line| line.strip_prefix(prefix));
    let mut operations: Vec<String> =
        series.filter_map(|line| Some(line.split_once(",migrated=\"false\"}")?.0.to_owned())).collect();
    operations.sort();
    operations
}

fn ebs() -> Value {
    json!({ "awsElasticBlockStore": { "volumeID": "vol-1" } })
}

fn flex() -> Value {
    json!({ "flexVolume": { "driver": "vendor/driver" } })
}

#[tokio::test(start_paused = true)]
async fn xp_4_the_resizer_of_a_migrated_source_is_named_once() {
    let cluster = start(environment().prepare(|sandbox| create(sandbox, &ebs()))).await;
    cluster.settle().await;
    assert!(cluster.requests_of(ACCOUNT).is_empty(), "a claim that does not grow costs no request");
    grow(cluster.sandbox(), "2Gi");
    cluster
        .eventually("the claim names the resizer", |sandbox| {
            claim(sandbox)["metadata"]["annotations"][RESIZER] == "ebs.csi.aws.com"
        })
        .await;
    cluster.settle().await;
    let text = "Normal ExternalExpanding CSI migration enabled for kubernetes.io/aws-ebs; waiting for external resizer to \
                expand the pvc";
    assert_eq!(events(cluster.sandbox()), [text]);
    grow(cluster.sandbox(), "3Gi");
    cluster.advance(Duration::from_mins(10)).await;
    assert_eq!(writes(&cluster), ["PUT namespaces/shop/persistentvolumeclaims/data/status"], "it has the annotation");
}

#[tokio::test(start_paused = true)]
async fn xp_5_of_other_sources_an_event_is_all() {
    let cluster = start(environment().prepare(|sandbox| {
        create(sandbox, &json!({ "csi": { "driver": "example.com", "volumeHandle": "1" } }));
    }))
    .await;
    grow(cluster.sandbox(), "2Gi");
    cluster.advance(Duration::from_mins(10)).await;
    let text = "Normal ExternalExpanding waiting for an external controller to expand this PVC";
    assert_eq!(events(cluster.sandbox()), [text]);
    assert!(writes(&cluster).is_empty());
}

#[tokio::test(start_paused = true)]
async fn xp_2_a_volume_of_another_claim_is_left_alone_until_it_is_bound() {
    let cluster = start(environment().prepare(|sandbox| {
        create(sandbox, &ebs());
        let spec = json!({ "claimRef": { "uid": "another" } });
        sandbox.patch(&VOLUMES, &volume_key(), &json!({ "spec": spec })).expect("the volume must be there");
    }))
    .await;
    grow(cluster.sandbox(), "2Gi");
    cluster.advance(Duration::from_mins(1)).await;
    assert!(writes(&cluster).is_empty() && events(cluster.sandbox()).is_empty());
    assert!(!cluster.requests_of(ACCOUNT).is_empty(), "the volume is read live");
    let uid = claim(cluster.sandbox())["metadata"]["uid"].clone();
    let spec = json!({ "spec": { "claimRef": { "uid": uid } } });
    cluster.sandbox().patch(&VOLUMES, &volume_key(), &spec).unwrap();
    cluster.advance(Duration::from_mins(20)).await;
    assert_eq!(claim(cluster.sandbox())["metadata"]["annotations"][RESIZER], "ebs.csi.aws.com");
}

/// A flex volume grows from 1 Gi to 2 Gi; the kubelet is played by the test.
async fn flex_life(cluster: &TestCluster) {
    cluster.watches(&[CLAIMS, VOLUMES]).await;
    grow(cluster.sandbox(), "2Gi");
    cluster
        .eventually("the kubelet is next", |sandbox| {
            claim(sandbox)["status"]["allocatedResourceStatuses"]["storage"] == "NodeResizePending"
        })
        .await;
    let (claim, volume) = (claim(cluster.sandbox()), volume(cluster.sandbox()));
    assert_eq!(claim["status"]["allocatedResources"]["storage"], "2Gi");
    assert_eq!(claim["metadata"]["annotations"][RESIZER], "vendor/driver");
    assert_eq!(volume["spec"]["capacity"]["storage"], "2Gi");
    assert_eq!(volume["metadata"]["annotations"][BEFORE], "1Gi");
    bind(cluster.sandbox(), "2Gi");
    let is_forgotten = |sandbox: &Sandbox| self::volume(sandbox)["metadata"]["annotations"][BEFORE].is_null();
    cluster.eventually("the old capacity is forgotten", is_forgotten).await;
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn xp_7_a_flex_volume_grows_in_four_writes() {
    let cluster = start(environment().prepare(|sandbox| create(sandbox, &flex()))).await;
    flex_life(&cluster).await;
    cluster.advance(Duration::from_mins(10)).await;
    let status = "PUT namespaces/shop/persistentvolumeclaims/data/status";
    assert_eq!(writes(&cluster), [status, "PATCH persistentvolumes/pv", status, "PATCH persistentvolumes/pv"]);
    assert!(events(cluster.sandbox()).is_empty());
    assert_eq!(operations(&cluster), [r#"operation_name="expand_volume",status="success""#]);
}

#[tokio::test(start_paused = true)]
async fn xp_7_a_raw_block_volume_has_its_size_at_once() {
    let block = json!({ "flexVolume": { "driver": "vendor/driver" }, "volumeMode": "Block" });
    let cluster = start(environment().prepare(move |sandbox| create(sandbox, &block))).await;
    grow(cluster.sandbox(), "2Gi");
    cluster.eventually("it has its size", |sandbox| claim(sandbox)["status"]["capacity"]["storage"] == "2Gi").await;
    cluster.settle().await;
    let status = claim(cluster.sandbox())["status"].clone();
    assert!(status["allocatedResourceStatuses"].is_null() && status["conditions"].is_null(), "{status}");
    assert_eq!(volume(cluster.sandbox())["spec"]["capacity"]["storage"], "2Gi");
    let text = "Normal VolumeResizeSuccessful ExpandVolume succeeded for volume shop/data";
    assert_eq!(events(cluster.sandbox()), [text]);
}

#[tokio::test(start_paused = true)]
async fn xp_7_a_volume_that_is_larger_than_the_request_keeps_its_capacity() {
    let cluster = start(environment().prepare(|sandbox| {
        create(sandbox, &flex());
        let spec = json!({ "spec": { "capacity": { "storage": "9Gi" } } });
        sandbox.patch(&VOLUMES, &volume_key(), &spec).expect("the volume must be there");
    }))
    .await;
    grow(cluster.sandbox(), "2Gi");
    cluster
        .eventually("the kubelet is next", |sandbox| {
            claim(sandbox)["status"]["allocatedResourceStatuses"]["storage"] == "NodeResizePending"
        })
        .await;
    assert_eq!(volume(cluster.sandbox())["spec"]["capacity"]["storage"], "9Gi");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_somebody_changes_meanwhile_is_read_again() {
    let cluster = start(environment().prepare(|sandbox| create(sandbox, &flex()))).await;
    cluster.sandbox().faults().inject(
        Fault::on_writes().resource(CLAIMS).times(1).fail(kcm_testing::sandbox::Status::new(
            409,
            "Conflict",
            "the object has been modified",
        )),
    );
    flex_life(&cluster).await;
    let text = "Warning VolumeResizeFailed error updating pvc shop/data: the object has been modified";
    assert_eq!(events(cluster.sandbox()), [text]);
    let expected =
        ["fail-unknown", "success"].map(|status| format!("operation_name=\"expand_volume\",status=\"{status}\""));
    assert_eq!(operations(&cluster), expected);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(|| environment().prepare(|sandbox| create(sandbox, &flex())), flex_life).await;
    assert_eq!(writes, 4);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = start(environment().prepare(|sandbox| create(sandbox, &flex()))).await;
        cluster.sandbox().faults().inject(fault.resource(CLAIMS));
        cluster.sandbox().faults().delay_events(&CLAIMS, Duration::from_secs(10));
        flex_life(&cluster).await;
    }
}
