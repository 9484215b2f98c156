//! Nodes, pods and volumes, and the stand-ins of the attacher of a CSI driver and of the kubelet.

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::{NODES, PODS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use super::super::view::VolumeAttachment;
use crate::persistentvolume_attach_detach::DESCRIPTOR;
use crate::shared::csi_driver::CsiDriver;

pub(super) const CLAIMS: Resource = PersistentVolumeClaim::RESOURCE;
pub(super) const VOLUMES: Resource = PersistentVolume::RESOURCE;
pub(super) const ATTACHMENTS: Resource = VolumeAttachment::RESOURCE;
pub(super) const DRIVERS: Resource = CsiDriver::RESOURCE;
pub(super) const IDENTITY: &str = "attachdetach-controller";
pub(super) const DRIVER: &str = "csi.example.com";
const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

pub(super) fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop").prepare(|sandbox| {
        create_node(sandbox, "a");
        create_node(sandbox, "b");
    })
}

pub(super) async fn watched(cluster: &TestCluster) {
    cluster.watches(&[PODS, CLAIMS, VOLUMES, NODES, ATTACHMENTS, DRIVERS]).await;
    cluster.settle().await;
}

pub(super) async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    watched(&cluster).await;
    cluster
}

pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name)
}

pub(super) fn in_shop(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

/// Creates a node that is ready and managed.
pub(super) fn create_node(sandbox: &Sandbox, name: &str) {
    let metadata = json!({ "name": name, "annotations": { MANAGED: "true" } });
    sandbox.create(&NODES, json!({ "metadata": metadata })).expect("the node must be valid");
    set_ready(sandbox, name, true);
}

pub(super) fn set_ready(sandbox: &Sandbox, node: &str, is_ready: bool) {
    let status = if is_ready { "True" } else { "Unknown" };
    patch_node(sandbox, node, &json!({ "conditions": [{ "type": "Ready", "status": status }] }));
}

pub(super) fn patch_node(sandbox: &Sandbox, node: &str, status: &Value) {
    sandbox.patch_status(&NODES, &key(node), &json!({ "status": status })).expect("the node must exist");
}

/// Sets the volumes that the kubelet uses.
pub(super) fn set_in_use(sandbox: &Sandbox, node: &str, volumes: &[&str]) {
    let names: Vec<String> = volumes.iter().map(|volume| unique_name(volume)).collect();
    patch_node(sandbox, node, &json!({ "volumesInUse": names }));
}

/// Unique name of the CSI volume `name`.
pub(super) fn unique_name(name: &str) -> String {
    format!("kubernetes.io/csi/{DRIVER}^handle-{name}")
}

/// Creates a claim that is bound to the volume of its name.
pub(super) fn create_bound(sandbox: &Sandbox, name: &str, mode: &str) {
    create_bound_source(
        sandbox,
        name,
        mode,
        &json!({ "csi": { "driver": DRIVER, "volumeHandle": format!("handle-{name}") } }),
    );
}

pub(super) fn create_bound_source(sandbox: &Sandbox, name: &str, mode: &str, source: &Value) {
    let spec = json!({
        "accessModes": [mode], "resources": { "requests": { "storage": "1Gi" } }, "volumeName": name,
        "storageClassName": "",
    });
    let claim = json!({ "metadata": { "namespace": "shop", "name": name }, "spec": spec });
    let uid = sandbox.create(&CLAIMS, claim).expect("the claim must be valid")["metadata"]["uid"].clone();
    let mut spec = json!({
        "capacity": { "storage": "1Gi" }, "accessModes": [mode],
        "claimRef": { "kind": "PersistentVolumeClaim", "namespace": "shop", "name": name, "uid": uid },
    });
    for (field, value) in source.as_object().expect("a source is an object") {
        spec[field] = value.clone();
    }
    sandbox.create(&VOLUMES, json!({ "metadata": { "name": name }, "spec": spec })).expect("the volume must be valid");
    bind(sandbox, name);
}

pub(super) fn bind(sandbox: &Sandbox, claim: &str) {
    let status = json!({ "status": { "phase": "Bound" } });
    sandbox.patch_status(&CLAIMS, &in_shop(claim), &status).expect("the claim must exist");
}

/// Creates a pod on a node that uses claims.
pub(super) fn create_pod(sandbox: &Sandbox, name: &str, node: &str, claims: &[&str]) {
    let volume = |claim: &&str| json!({ "name": claim, "persistentVolumeClaim": { "claimName": claim } });
    create_pod_with(sandbox, name, node, &claims.iter().map(volume).collect::<Vec<_>>().into());
}

pub(super) fn create_pod_with(sandbox: &Sandbox, name: &str, node: &str, volumes: &Value) {
    let containers = json!([{ "name": "main", "image": "example/main:1" }]);
    let pod = json!({
        "metadata": { "namespace": "shop", "name": name },
        "spec": { "nodeName": node, "containers": containers, "volumes": volumes },
    });
    sandbox.create(&PODS, pod).expect("the pod must be valid");
}

pub(super) fn delete_pod(sandbox: &Sandbox, name: &str) {
    sandbox.delete_now(&PODS, &in_shop(name)).expect("the pod must exist");
}

/// Works as the attacher of the driver: attaches what is to be attached, and ends what is being deleted.
pub(super) fn attacher(sandbox: &Sandbox) {
    for attachment in sandbox.list(&ATTACHMENTS, None) {
        let name = key(attachment["metadata"]["name"].as_str().expect("it has a name"));
        if !attachment["metadata"]["deletionTimestamp"].is_null() {
            sandbox
                .patch(&ATTACHMENTS, &name, &json!({ "metadata": { "finalizers": null } }))
                .expect("the attachment must exist");
        } else if attachment["status"]["attached"] != true {
            let finalizers = json!({ "metadata": { "finalizers": ["external-attacher/csi-example-com"] } });
            sandbox.patch(&ATTACHMENTS, &name, &finalizers).expect("the attachment must exist");
            sandbox
                .patch_status(&ATTACHMENTS, &name, &json!({ "status": { "attached": true } }))
                .expect("the attachment must exist");
        }
    }
}

/// Returns `NODE VOLUME` of each attachment, sorted, with `attached` or `deleted` if it is.
pub(super) fn attachments(sandbox: &Sandbox) -> Vec<String> {
    let line = |attachment: &Value| {
        let spec = &attachment["spec"];
        let volume = spec["source"]["persistentVolumeName"].as_str().unwrap_or("inline");
        let mut line = format!("{} {volume}", spec["nodeName"].as_str().unwrap_or_default());
        if attachment["status"]["attached"] == true {
            line.push_str(" attached");
        }
        if !attachment["metadata"]["deletionTimestamp"].is_null() {
            line.push_str(" deleted");
        }
        line
    };
    let mut lines: Vec<_> = sandbox.list(&ATTACHMENTS, None).iter().map(line).collect();
    lines.sort();
    lines
}

/// Returns the names in the report of a node, in order.
pub(super) fn reported(sandbox: &Sandbox, node: &str) -> Vec<String> {
    let node = sandbox.get(&NODES, &key(node)).unwrap_or_default();
    let names = node["status"]["volumesAttached"].as_array().cloned().unwrap_or_default();
    names.iter().map(|entry| entry["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Returns `true` if the volume is attached to the node and reported there.
pub(super) fn is_attached(sandbox: &Sandbox, node: &str, volume: &str) -> bool {
    attachments(sandbox).contains(&format!("{node} {volume} attached"))
        && reported(sandbox, node).contains(&unique_name(volume))
}

/// Waits until the volume is attached to the node while the attacher works.
pub(super) async fn until_attached(cluster: &TestCluster, node: &str, volume: &str) {
    cluster
        .eventually(&format!("{volume} is attached to {node}"), |sandbox| {
            attacher(sandbox);
            is_attached(sandbox, node, volume)
        })
        .await;
}

/// Waits until nothing is attached while the attacher works.
pub(super) async fn until_detached(cluster: &TestCluster) {
    cluster
        .eventually("nothing is attached", |sandbox| {
            attacher(sandbox);
            attachments(sandbox).is_empty() && reported(sandbox, "a").is_empty() && reported(sandbox, "b").is_empty()
        })
        .await;
}

/// Returns method and path of each write, without the prefix of the API.
pub(super) fn writes(cluster: &TestCluster) -> Vec<String> {
    let name = |path: &str| match path.rsplit_once("/csi-") {
        Some((path, _)) => format!("{path}/ID"),
        None => path.to_owned(),
    };
    let line = |path: &str| name(path.rsplit("/v1/").next().unwrap_or_default());
    cluster.writes_of(IDENTITY).iter().map(|request| format!("{} {}", request.method, line(&request.path))).collect()
}
