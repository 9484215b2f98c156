//! SE-1: the changes that enqueue Pods.

use std::sync::Arc;

use kcm_framework::api::views::{MountSource, PersistentVolume, PersistentVolumeClaim, Pod, PodSelinux};
use kcm_framework::api::{Need, Needs, ObjectKey, View};
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use crate::selinux_warning::event_mapping::{
    claim_for_claim, claim_for_volume, claim_of, claims_of, driver_for_driver, key_for_pod,
};
use crate::shared::csi_driver::CsiDriver;

fn read<V: View>(object: &Value) -> Arc<V> {
    Arc::new(V::decode(&object.to_string()).unwrap())
}

fn updated<V: View>(old: &Value, new: &Value) -> Change<V> {
    Change::Updated { old: read(old), new: read(new) }
}

fn pod(uid: &str, phase: &str, level: &str) -> Value {
    let container = json!({ "name": "main", "volumeMounts": [{ "name": "data" }] });
    json!({
        "metadata": { "namespace": "shop", "name": "web", "uid": uid },
        "spec": {
            "securityContext": { "seLinuxOptions": { "level": level } },
            "containers": [container],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }, { "name": "x", "emptyDir": {} }],
        },
        "status": { "phase": phase },
    })
}

fn without_volumes() -> Value {
    json!({ "metadata": { "namespace": "shop", "name": "web", "uid": "1" }, "spec": { "containers": [] } })
}

fn reader() -> kcm_framework::api::PartReader<PodSelinux> {
    [Need::part::<PodSelinux>()].into_iter().collect::<Needs>().reader().unwrap()
}

#[test]
fn se_1_pods_are_enqueued_when_they_come_end_or_change_their_mounts() {
    let running = pod("1", "Running", "s0");
    for (name, change, expected) in [
        ("added", Change::Added(read(&running)), true),
        ("added after its end", Change::Added(read(&pod("1", "Failed", "s0"))), false),
        ("added without volumes", Change::Added(read(&without_volumes())), false),
        ("started", updated(&pod("1", "Pending", "s0"), &running), false),
        ("failed", updated(&running, &pod("1", "Failed", "s0")), true),
        ("succeeded", updated(&running, &pod("1", "Succeeded", "s0")), true),
        ("recreated", updated(&running, &pod("2", "Running", "s0")), true),
        ("another label, as of an ephemeral container", updated(&running, &pod("1", "Running", "s1")), true),
    ] {
        let expected = expected.then(|| ObjectKey::namespaced("shop", "web"));
        assert_eq!(key_for_pod(&change, reader()), expected, "{name}");
    }
}

#[test]
fn se_3_the_claims_of_a_pod() {
    let web = read::<Pod>(&pod("1", "Running", "s0"));
    assert_eq!(claims_of(&web, reader().of(&web)), [ObjectKey::namespaced("shop", "data")]);
    let of = |source| claim_of(&web.metadata.key, "scratch", &source);
    assert_eq!(of(MountSource::Ephemeral), Some(ObjectKey::namespaced("shop", "web-scratch")));
    assert_eq!((of(MountSource::Inline), of(MountSource::Other)), (None, None));
}

fn claim(uid: &str, volume: &str, phase: &str) -> Value {
    json!({
        "metadata": { "namespace": "shop", "name": "data", "uid": uid },
        "spec": { "volumeName": volume }, "status": { "phase": phase },
    })
}

#[test]
fn se_1_claims_enqueue_their_pods_when_they_are_bound() {
    let (waiting, named) = (claim("1", "", "Pending"), claim("1", "pv", "Pending"));
    let bound = claim("1", "pv", "Bound");
    for (name, change, expected) in [
        ("added and bound", Change::<PersistentVolumeClaim>::Added(read(&bound)), true),
        ("added", Change::Added(read(&waiting)), false),
        ("names its volume", updated(&waiting, &named), false),
        ("becomes bound", updated(&named, &bound), true),
        ("stays bound", updated(&bound, &bound), false),
        ("another volume", updated(&bound, &claim("1", "other", "Bound")), true),
        ("recreated", updated(&bound, &claim("2", "pv", "Bound")), true),
        ("lost", updated(&bound, &claim("1", "pv", "Lost")), false),
    ] {
        let expected = expected.then(|| ObjectKey::namespaced("shop", "data"));
        assert_eq!(claim_for_claim(&change), expected, "{name}");
    }
}

fn volume(uid: &str, claim: &Value) -> Value {
    json!({ "metadata": { "name": "pv", "uid": uid }, "spec": { "claimRef": claim } })
}

fn reference(uid: &str) -> Value {
    json!({ "namespace": "shop", "name": "data", "uid": uid })
}

#[test]
fn se_1_volumes_enqueue_the_pods_of_their_claim_when_they_are_bound() {
    let (free, reserved, bound) =
        (volume("1", &Value::Null), volume("1", &reference("")), volume("1", &reference("c")));
    for (name, change, expected) in [
        ("added and bound", Change::<PersistentVolume>::Added(read(&bound)), true),
        ("added and reserved", Change::Added(read(&reserved)), false),
        ("added and free", Change::Added(read(&free)), false),
        ("becomes reserved", updated(&free, &reserved), false),
        ("becomes bound", updated(&reserved, &bound), true),
        ("stays bound", updated(&bound, &bound), false),
        ("bound to another claim", updated(&bound, &volume("1", &reference("d"))), true),
        ("becomes free", updated(&bound, &free), false),
        ("recreated", updated(&bound, &volume("2", &reference("c"))), true),
    ] {
        let expected = expected.then(|| ObjectKey::namespaced("shop", "data"));
        assert_eq!(claim_for_volume(&change), expected, "{name}");
    }
}

#[test]
fn se_1_drivers_enqueue_their_pods_when_they_begin_or_end_to_mount_with_labels() {
    let driver = |mounts: Value| json!({ "metadata": { "name": "d" }, "spec": { "seLinuxMount": mounts } });
    let (unset, off, on) = (driver(Value::Null), driver(json!(false)), driver(json!(true)));
    for (name, change, expected) in [
        ("added", Change::<CsiDriver>::Added(read(&off)), true),
        ("unset is off", updated(&unset, &off), false),
        ("on", updated(&off, &on), true),
        ("off", updated(&on, &unset), true),
    ] {
        assert_eq!(driver_for_driver(&change), expected.then_some("d"), "{name}");
    }
}
