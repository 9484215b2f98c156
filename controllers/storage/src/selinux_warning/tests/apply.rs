//! Pods that share volumes, on an API server in the process.

use std::time::Duration;

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, PODS, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use crate::selinux_warning::DESCRIPTOR;
use crate::shared::csi_driver::CsiDriver;

const CLAIMS: Resource = PersistentVolumeClaim::RESOURCE;
const VOLUMES: Resource = PersistentVolume::RESOURCE;
const DRIVERS: Resource = CsiDriver::RESOURCE;
const IDENTITY: &str = "selinux-warning-controller";
const COMPONENT: &str = "selinux_warning";
const DRIVER: &str = "csi.example.com";

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).select(&["selinux-warning-controller"]).namespace("shop").namespace("bank")
}

async fn start() -> TestCluster {
    let cluster = environment().start().await;
    cluster.watches(&[CLAIMS, DRIVERS, PODS, VOLUMES]).await;
    cluster
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name.to_owned())
}

fn create_driver(sandbox: &Sandbox, mounts: bool) {
    let driver = json!({ "metadata": { "name": DRIVER }, "spec": { "seLinuxMount": mounts } });
    sandbox.create(&DRIVERS, driver).expect("the driver must be valid");
}

/// Creates the claim `data` and its volume, which is bound to it.
fn create_volume(sandbox: &Sandbox) {
    create_claim(sandbox, "");
    let uid = sandbox.get(&CLAIMS, &key("data")).expect("the claim is there")["metadata"]["uid"].clone();
    let spec = json!({
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteMany"], "storageClassName": "fast",
        "claimRef": { "kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data", "uid": uid },
        "csi": { "driver": DRIVER, "volumeHandle": "1" },
    });
    sandbox.create(&VOLUMES, json!({ "metadata": { "name": "pv" }, "spec": spec })).expect("the volume must be valid");
    let patch = json!({ "spec": { "volumeName": "pv" } });
    sandbox.patch(&CLAIMS, &key("data"), &patch).expect("the claim is there");
    let status = json!({ "phase": "Bound", "accessModes": ["ReadWriteMany"], "capacity": { "storage": "1Gi" } });
    sandbox.patch_status(&CLAIMS, &key("data"), &json!({ "status": status })).expect("the claim is there");
}

fn create_claim(sandbox: &Sandbox, volume: &str) {
    let resources = json!({ "requests": { "storage": "1Gi" } });
    let spec = json!({
        "accessModes": ["ReadWriteMany"], "storageClassName": "fast", "volumeName": volume, "resources": resources,
    });
    let claim = json!({ "metadata": { "namespace": "shop", "name": "data" }, "spec": spec });
    sandbox.create(&CLAIMS, claim).expect("the claim must be valid");
}

/// The JSON of a Pod that mounts a volume with an `SELinux` level.
fn pod(name: &str, level: &str, volume: &Value) -> Value {
    let mut data = json!({ "name": "data" });
    for (field, value) in volume.as_object().expect("a source is an object") {
        data[field] = value.clone();
    }
    let mounts = json!([{ "name": "data", "mountPath": "/data" }]);
    json!({
        "metadata": { "namespace": "shop", "name": name },
        "spec": {
            "securityContext": { "seLinuxOptions": { "level": level } },
            "containers": [{ "name": "main", "image": "example/main:1", "volumeMounts": mounts }],
            "volumes": [data],
        },
    })
}

fn of_claim() -> Value {
    json!({ "persistentVolumeClaim": { "claimName": "data" } })
}

fn iscsi() -> Value {
    json!({ "iscsi": { "targetPortal": "192.0.2.1:3260", "iqn": "iqn.2001-04.com.example:disk", "lun": 1 } })
}

fn create(sandbox: &Sandbox, pod: Value) {
    sandbox.create(&PODS, pod).expect("the pod must be valid");
}

fn finish(sandbox: &Sandbox, name: &str) {
    let status = json!({ "status": { "phase": "Succeeded" } });
    sandbox.patch_status(&PODS, &key(name), &status).expect("the pod is there");
}

/// The reasons of the events, in order.
fn reasons(cluster: &TestCluster) -> Vec<String> {
    let reason = |event: String| event.split_whitespace().nth(1).unwrap_or_default().to_owned();
    cluster.events_of(COMPONENT).into_iter().map(reason).collect()
}

/// The series of the metric, without its name.
fn series(cluster: &TestCluster) -> Vec<String> {
    let metrics = cluster.metrics();
    let series =
        metrics.lines().filter_map(|line| line.strip_prefix("selinux_warning_controller_selinux_volume_conflict{"));
    series.map(str::to_owned).collect()
}

async fn has_conflicts(cluster: &TestCluster, what: &str, number: usize) {
    for _ in 0..20 {
        if series(cluster).len() == number {
            return;
        }
        cluster.settle().await;
    }
    panic!("{what}: {:?}", series(cluster));
}

const NONE: [&str; 0] = [];

/// Starts with the Pods `a` and `b`, whose labels of one volume conflict.
async fn start_with_conflict() -> TestCluster {
    let cluster = start().await;
    let sandbox = cluster.sandbox();
    create_driver(sandbox, true);
    create_volume(sandbox);
    create(sandbox, pod("a", "s0:c1", &of_claim()));
    create(sandbox, pod("b", "s0:c2", &of_claim()));
    has_conflicts(&cluster, "they conflict", 2).await;
    cluster
}

#[tokio::test(start_paused = true)]
async fn se_1_to_11_two_pods_with_different_levels_are_warned_until_one_ends() {
    let cluster = start().await;
    let sandbox = cluster.sandbox();
    create_driver(sandbox, true);
    create_volume(sandbox);
    create(sandbox, pod("a", "s0:c1", &of_claim()));
    create(sandbox, pod("equal", "s0:c1", &of_claim()));
    cluster.settle().await;
    assert_eq!(cluster.events_of(COMPONENT), NONE);
    create(sandbox, pod("b", "s0:c2", &of_claim()));
    has_conflicts(&cluster, "b conflicts with two", 4).await;
    cluster.settle().await;
    let events = cluster.events_of(COMPONENT);
    assert_eq!(events.len(), 4, "{events:?}");
    let expected =
        "Normal SELinuxLabelConflict SELinuxLabel \":::s0:c1\" conflicts with pod b that uses the same volume";
    assert_eq!(events.iter().filter(|event| event.starts_with(expected)).count(), 2, "{events:?}");
    let expected = "property=\"SELinuxLabel\",pod1_namespace=\"shop\",pod1_name=\"a\",pod1_value=\":::s0:c1\",\
                    pod2_namespace=\"shop\",pod2_name=\"b\",pod2_value=\":::s0:c2\"} 1";
    assert!(series(&cluster).contains(&expected.to_owned()), "{:?}", series(&cluster));
    finish(sandbox, "b");
    has_conflicts(&cluster, "b has finished", 0).await;
    assert!(cluster.writes_of(IDENTITY).is_empty(), "it writes nothing but events");
    assert!(cluster.metrics().contains("# HELP selinux_warning_controller_selinux_volume_conflict [ALPHA]"));
}

#[tokio::test(start_paused = true)]
async fn se_1_a_deleted_pod_leaves_and_its_successor_is_another_pod() {
    let cluster = start_with_conflict().await;
    let sandbox = cluster.sandbox();
    sandbox.delete_now(&PODS, &key("b")).unwrap();
    has_conflicts(&cluster, "b was deleted", 0).await;
    sandbox.faults().hold_watches(&PODS);
    create(sandbox, pod("b", "s0:c2", &iscsi()));
    sandbox.faults().release_watches(&PODS);
    cluster.settle().await;
    assert_eq!(series(&cluster), NONE);
}

#[tokio::test(start_paused = true)]
async fn se_3_a_pod_waits_for_its_claim_without_requests() {
    let cluster = start().await;
    let sandbox = cluster.sandbox();
    create_driver(sandbox, true);
    create(sandbox, pod("a", "s0:c1", &of_claim()));
    create(sandbox, pod("b", "s0:c2", &of_claim()));
    cluster.advance(Duration::from_mins(10)).await;
    assert_eq!((series(&cluster), cluster.events_of(COMPONENT)), (vec![], vec![]));
    create_volume(sandbox);
    has_conflicts(&cluster, "the claim is bound", 2).await;
}

#[tokio::test(start_paused = true)]
async fn se_1_a_late_watch_of_claims_and_volumes_delays_the_warning_only() {
    for late in [CLAIMS, VOLUMES, DRIVERS, PODS] {
        let cluster = start().await;
        let sandbox = cluster.sandbox();
        sandbox.faults().hold_watches(&late);
        create_driver(sandbox, true);
        create(sandbox, pod("a", "s0:c1", &of_claim()));
        create_volume(sandbox);
        create(sandbox, pod("b", "s0:c2", &of_claim()));
        cluster.settle().await;
        assert_eq!(series(&cluster), NONE, "{late:?}");
        sandbox.faults().release_watches(&late);
        has_conflicts(&cluster, &format!("{late:?}"), 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn se_1_a_driver_that_another_client_changes_decides_again() {
    let cluster = start().await;
    let sandbox = cluster.sandbox();
    create_volume(sandbox);
    create(sandbox, pod("a", "s0:c1", &of_claim()));
    create(sandbox, pod("b", "s0:c2", &of_claim()));
    cluster.settle().await;
    assert_eq!(series(&cluster), NONE, "a driver without object mounts without labels");
    create_driver(sandbox, true);
    has_conflicts(&cluster, "the driver mounts with labels", 2).await;
    let off = json!({ "spec": { "seLinuxMount": false } });
    sandbox.patch(&DRIVERS, &ObjectKey::cluster_scoped(DRIVER), &off).unwrap();
    has_conflicts(&cluster, "it does not any more", 0).await;
    let on = json!({ "spec": { "seLinuxMount": true } });
    sandbox.patch(&DRIVERS, &ObjectKey::cluster_scoped(DRIVER), &on).unwrap();
    has_conflicts(&cluster, "it does again", 2).await;
    sandbox.delete_now(&DRIVERS, &ObjectKey::cluster_scoped(DRIVER)).unwrap();
    has_conflicts(&cluster, "it was deleted", 0).await;
    let policies = reasons(&cluster).into_iter().filter(|reason| reason.contains("Policy")).count();
    assert_eq!(policies, 0, "the pods are compared after both have seen the change");
}

#[tokio::test(start_paused = true)]
async fn se_10_a_pod_of_another_namespace_is_not_named() {
    let cluster = start().await;
    let sandbox = cluster.sandbox();
    create(sandbox, pod("a", "s0:c1", &iscsi()));
    let mut other = pod("secret", "s0:c2", &iscsi());
    other["metadata"]["namespace"] = json!("bank");
    create(sandbox, other);
    has_conflicts(&cluster, "they conflict", 2).await;
    cluster.settle().await;
    let events = cluster.events_of(COMPONENT);
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event.contains("another pod") && !event.contains("secret")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn se_4_several_labels_of_one_pod_are_warned_of_and_not_compared() {
    let cluster = start().await;
    let sandbox = cluster.sandbox();
    let mut several = pod("a", "s0:c1", &json!({ "emptyDir": {} }));
    let mut second = several["spec"]["containers"][0].clone();
    second["name"] = json!("second");
    second["securityContext"] = json!({ "seLinuxOptions": { "level": "s0:c2" } });
    several["spec"]["containers"] = json!([several["spec"]["containers"][0], second]);
    create(sandbox, several);
    cluster.advance(Duration::from_mins(5)).await;
    let expected =
        "Warning MultipleSELinuxLabels Volume \"data\" is mounted twice with different SELinux labels inside this pod";
    assert_eq!(cluster.events_of(COMPONENT), [expected]);
    assert_eq!(series(&cluster), NONE);
}

#[tokio::test(start_paused = true)]
async fn se_4_a_pod_that_gets_a_second_label_ends_its_conflicts() {
    let cluster = start().await;
    let sandbox = cluster.sandbox();
    create(sandbox, pod("a", "s0:c1", &iscsi()));
    create(sandbox, pod("b", "s0:c2", &iscsi()));
    has_conflicts(&cluster, "they conflict", 2).await;
    let debug = json!([{
        "name": "debug", "image": "example/debug:1", "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
        "securityContext": { "seLinuxOptions": { "level": "s0:c2" } },
    }]);
    let patch = json!({ "spec": { "ephemeralContainers": debug } });
    DirectClient::new(sandbox).merge(&PODS, &key("a"), Some("ephemeralcontainers"), &patch).expect("the pod is there");
    has_conflicts(&cluster, "it has no single label", 0).await;
}

#[tokio::test(start_paused = true)]
async fn se_6_a_recursive_policy_conflicts_with_a_label() {
    let cluster = start().await;
    let sandbox = cluster.sandbox();
    create(sandbox, pod("a", "s0:c1", &iscsi()));
    let mut recursive = pod("b", "s0:c1", &iscsi());
    recursive["spec"]["securityContext"]["seLinuxChangePolicy"] = json!("Recursive");
    create(sandbox, recursive);
    has_conflicts(&cluster, "policy and label", 4).await;
    cluster.settle().await;
    let mut reasons = reasons(&cluster);
    reasons.dedup();
    assert_eq!(reasons, ["SELinuxChangePolicyConflict", "SELinuxLabelConflict"]);
}

#[tokio::test(start_paused = true)]
async fn se_5_an_inline_volume_of_a_migrated_plugin_is_read_live_until_it_succeeds() {
    let cluster = start().await;
    let sandbox = cluster.sandbox();
    let driver = json!({ "metadata": { "name": "ebs.csi.aws.com" }, "spec": { "seLinuxMount": true } });
    sandbox.create(&DRIVERS, driver).unwrap();
    let failure = Status::new(500, "InternalError", "not now");
    sandbox.faults().inject(Fault::on(Verb::Get).resource(PODS).times(1).fail(failure));
    let ebs = json!({ "awsElasticBlockStore": { "volumeID": "vol-1" } });
    create(sandbox, pod("a", "s0:c1", &ebs));
    create(sandbox, pod("b", "s0:c2", &ebs));
    has_conflicts(&cluster, "they conflict", 2).await;
    assert_eq!(cluster.requests_of(IDENTITY).iter().filter(|request| request.path.ends_with("/pods/a")).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_manager_finds_the_same_conflicts() {
    let cluster = start_with_conflict().await;
    let before = series(&cluster);
    cluster.kill();
    cluster.watches(&[CLAIMS, DRIVERS, PODS, VOLUMES]).await;
    has_conflicts(&cluster, "they conflict still", 2).await;
    assert_eq!(series(&cluster), before);
}

#[tokio::test(start_paused = true)]
async fn it_explains_the_claim_that_a_pod_waits_for() {
    let cluster = start().await;
    create(cluster.sandbox(), pod("a", "s0:c1", &of_claim()));
    cluster.settle().await;
    let explained = cluster.handle().explain(IDENTITY, &key("a")).expect("there is such a controller");
    assert!(format!("{explained:?}").contains("waits for shop/data, which does not exist"), "{explained:?}");
}
