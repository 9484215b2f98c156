//! Claims and volumes in a short notation.
//!
//! A volume is `NAME CAPACITY` and a claim `NAME REQUEST`, with words and `KEY=VALUE` after them. In the results of a test,
//! `uid` says that the reference has the uid of the claim, and `other` that it has another one.

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::Sandbox;
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use crate::persistentvolume_binder::DESCRIPTOR;

pub(super) const CLAIMS: Resource = PersistentVolumeClaim::RESOURCE;
pub(super) const VOLUMES: Resource = PersistentVolume::RESOURCE;
pub(super) const CLASSES: Resource = Resource::cluster_scoped("storage.k8s.io", "v1", "storageclasses", "StorageClass");
pub(super) const IDENTITY: &str = "persistent-volume-binder";
pub(super) const COMPONENT: &str = "persistentvolume-controller";

const BOUND_BY: &str = "pv.kubernetes.io/bound-by-controller";
const COMPLETED: &str = "pv.kubernetes.io/bind-completed";

pub(super) fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop")
}

pub(super) async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[CLAIMS, VOLUMES, CLASSES]).await;
    cluster
}

pub(super) fn claim_key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name.to_owned())
}

pub(super) fn volume_key(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name)
}

/// The words of a notation after name and capacity.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn of(text: &'a str) -> (&'a str, &'a str, Self) {
        let mut words = text.split_whitespace();
        let (name, capacity) = (words.next().unwrap(), words.next().unwrap());
        (name, capacity, Self(words.collect()))
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn list(&self, key: &str, default: &str) -> Vec<String> {
        let modes = |mode: &str| match mode {
            "RWO" => "ReadWriteOnce".to_owned(),
            "ROX" => "ReadOnlyMany".to_owned(),
            "RWX" => "ReadWriteMany".to_owned(),
            "RWOP" => "ReadWriteOncePod".to_owned(),
            other => other.to_owned(),
        };
        self.value(key).unwrap_or(default).split(',').map(modes).collect()
    }
}

/// The JSON of a claim.
pub(super) fn claim(text: &str) -> Value {
    let (name, request, words) = Words::of(text);
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "namespace": "shop", "name": name, "uid": format!("uid-{name}"), "annotations": {} },
        "spec": {
            "accessModes": words.list("modes", "RWO"),
            "resources": { "requests": { "storage": request } },
            "volumeMode": words.value("mode").unwrap_or("Filesystem"),
        },
        "status": { "phase": words.value("phase").unwrap_or("Pending") },
    });
    let (spec, fields) = (
        &mut claim["spec"],
        [("volume", "volumeName"), ("class", "storageClassName"), ("vac", "volumeAttributesClassName")],
    );
    for (key, field) in fields {
        if let Some(value) = words.value(key) {
            spec[field] = json!(value);
        }
    }
    if let Some(label) = words.value("selector") {
        spec["selector"] = json!({ "matchLabels": { "tier": label } });
    }
    let annotations = &mut claim["metadata"]["annotations"];
    for (word, annotation) in [("bbc", BOUND_BY), ("bc", COMPLETED)] {
        if words.has(word) {
            annotations[annotation] = json!("yes");
        }
    }
    if let Some(node) = words.value("node") {
        annotations["volume.kubernetes.io/selected-node"] = json!(node);
    }
    claim
}

/// The JSON of a volume. `uids` returns the uid of a claim.
pub(super) fn volume(text: &str, uids: impl Fn(&str) -> String) -> Value {
    let (name, capacity, words) = Words::of(text);
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": { "name": name, "uid": format!("uid-{name}"), "annotations": {} },
        "spec": {
            "accessModes": words.list("modes", "RWO,ROX"),
            "capacity": { "storage": capacity },
            "volumeMode": words.value("mode").unwrap_or("Filesystem"),
            "persistentVolumeReclaimPolicy": words.value("policy").unwrap_or("Retain"),
            "storageClassName": words.value("class").unwrap_or_default(),
        },
        "status": { "phase": words.value("phase").unwrap_or("Available") },
    });
    let source = match words.value("path") {
        Some(path) => ("hostPath", json!({ "path": path })),
        None if words.has("csi") => ("csi", json!({ "driver": "csi.example.com", "volumeHandle": name })),
        None if words.has("nfs") => ("nfs", json!({ "server": "files.example.com", "path": "/export" })),
        None => ("local", json!({ "path": "/mnt/data" })),
    };
    volume["spec"][source.0] = source.1;
    if let Some(claim) = words.value("claim") {
        volume["spec"]["claimRef"] = json!({ "namespace": "shop", "name": claim });
        if words.has("uid") {
            volume["spec"]["claimRef"]["uid"] = json!(uids(claim));
        } else if words.has("other") {
            volume["spec"]["claimRef"]["uid"] = json!("0f0e7c58-4d0e-4c5a-9c60-1b9a9b5f4d11");
        }
    }
    if let Some(class) = words.value("vac") {
        volume["spec"]["volumeAttributesClassName"] = json!(class);
    }
    if let Some(label) = words.value("label") {
        volume["metadata"]["labels"] = json!({ "tier": label });
    }
    if words.has("bbc") {
        volume["metadata"]["annotations"][BOUND_BY] = json!("yes");
    }
    if let Some(plugin) = words.value("by") {
        volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] = json!(plugin);
    }
    volume
}

/// The uid of a claim of [`claim`] that no API server has stored.
pub(super) fn own_uid(claim: &str) -> String {
    format!("uid-{claim}")
}

fn stored(sandbox: &Sandbox, resource: &Resource, key: &ObjectKey, object: &Value) {
    let mut new = object.clone();
    if let Some(metadata) = new["metadata"].as_object_mut() {
        metadata.remove("uid");
    }
    sandbox.create(resource, new).expect("the object must be valid");
    sandbox.patch_status(resource, key, &json!({ "status": object["status"] })).expect("the object is there");
}

pub(super) fn create_claim(sandbox: &Sandbox, text: &str) {
    let claim = claim(text);
    stored(sandbox, &CLAIMS, &claim_key(claim["metadata"]["name"].as_str().unwrap()), &claim);
}

pub(super) fn create_volume(sandbox: &Sandbox, text: &str) {
    let uids = |name: &str| {
        let claim = sandbox.get(&CLAIMS, &claim_key(name)).expect("the claim must be created first");
        claim["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    let volume = volume(text, uids);
    stored(sandbox, &VOLUMES, &volume_key(volume["metadata"]["name"].as_str().unwrap()), &volume);
}

pub(super) fn create_class(sandbox: &Sandbox, name: &str, provisioner: &str, mode: &str) {
    let class = json!({ "metadata": { "name": name }, "provisioner": provisioner, "volumeBindingMode": mode });
    sandbox.create(&CLASSES, class).expect("the class must be valid");
}

/// Returns the state of a claim in the notation.
pub(super) fn state_of_claim(sandbox: &Sandbox, name: &str) -> String {
    let Some(claim) = sandbox.get(&CLAIMS, &claim_key(name)) else { return format!("{name} deleted") };
    let mut state = vec![name.to_owned()];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if !text(&claim["spec"]["volumeName"]).is_empty() {
        state.push(format!("volume={}", text(&claim["spec"]["volumeName"])));
    }
    state.push(format!("phase={}", text(&claim["status"]["phase"])));
    if let Some(capacity) = claim["status"]["capacity"]["storage"].as_str() {
        state.push(format!("capacity={capacity}"));
    }
    for (word, annotation) in [("bbc", BOUND_BY), ("bc", COMPLETED)] {
        if !claim["metadata"]["annotations"][annotation].is_null() {
            state.push(word.to_owned());
        }
    }
    state.join(" ")
}

/// Returns the state of a volume in the notation.
pub(super) fn state_of_volume(sandbox: &Sandbox, name: &str) -> String {
    let Some(volume) = sandbox.get(&VOLUMES, &volume_key(name)) else { return format!("{name} deleted") };
    let mut state = vec![name.to_owned()];
    let reference = &volume["spec"]["claimRef"];
    if let Some(claim) = reference["name"].as_str() {
        state.push(format!("claim={claim}"));
        let uid = sandbox.get(&CLAIMS, &claim_key(claim)).unwrap_or_default()["metadata"]["uid"].clone();
        let of_claim = &reference["uid"];
        if !of_claim.is_null() {
            state.push(if *of_claim == uid { "uid".to_owned() } else { "other".to_owned() });
        }
    }
    state.push(format!("phase={}", volume["status"]["phase"].as_str().unwrap_or_default()));
    if !volume["metadata"]["annotations"][BOUND_BY].is_null() {
        state.push("bbc".to_owned());
    }
    state.join(" ")
}
