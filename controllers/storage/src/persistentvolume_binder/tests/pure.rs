//! Edits, plugins, the recycler pod, directories and registries.

use std::time::Duration;

use kcm_framework::api::views::{ClaimPhase, PersistentVolume};
use kcm_framework::api::{ObjectKey, View as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fixtures::{own_uid, volume};
use super::matching::{decoded, decoded_claim};
use crate::persistentvolume_binder::edits;
use crate::persistentvolume_binder::events::BinderEvent;
use crate::persistentvolume_binder::host_path::{self, beneath_temporary};
use crate::persistentvolume_binder::operations::BackOffs;
use crate::persistentvolume_binder::plugins::{Actor, Plugin, deleter, driver_of, provisioner};
use crate::persistentvolume_binder::recycler::{Recycler, default_template, parse_template};
use crate::persistentvolume_binder::vocabulary::Annotations;
use crate::persistentvolume_binder::volume_plan::{Reclaim, reclaim};
use crate::persistentvolume_binder::waiting::{LastEvents, WaitingClaims};

fn json_of(edit: edits::Edit) -> Option<Value> {
    edit.unwrap().map(|document| serde_json::from_str(document.as_str()).unwrap())
}

fn annotated(text: &str, annotations: &Value, finalizers: &Value) -> PersistentVolume {
    let mut json = volume(text, own_uid);
    json["metadata"]["annotations"] = annotations.clone();
    json["metadata"]["finalizers"] = finalizers.clone();
    PersistentVolume::decode(&json.to_string()).unwrap()
}

#[test]
fn pvb_18_and_19_the_side_that_the_controller_fills_in_says_so() {
    let claim = decoded_claim("c 1Gi");
    let bound = json_of(edits::bind_volume(&decoded("v 1Gi"), &claim)).unwrap();
    assert_eq!(bound["spec"]["claimRef"]["uid"], "uid-c");
    assert_eq!(bound["spec"]["claimRef"]["kind"], "PersistentVolumeClaim");
    assert_eq!(bound["metadata"]["annotations"], json!({ "pv.kubernetes.io/bound-by-controller": "yes" }));
    let reserved = json_of(edits::bind_volume(&decoded("v 1Gi claim=c"), &claim)).unwrap();
    assert_eq!(reserved["spec"]["claimRef"]["uid"], "uid-c");
    assert_eq!(reserved["metadata"]["annotations"], json!({}));
    assert_eq!(json_of(edits::bind_volume(&decoded("v 1Gi claim=c uid"), &claim)), None);
    let named = decoded_claim("c 1Gi volume=v");
    let named = json_of(edits::bind_claim(&named, &named.document, "v")).unwrap();
    assert_eq!(named["metadata"]["annotations"], json!({ "pv.kubernetes.io/bind-completed": "yes" }));
}

#[test]
fn pvb_20_and_t_33_the_capacity_follows_the_volume_when_the_phase_changes_only() {
    let capacity = |claim: &str, volume: &PersistentVolume| {
        let claim = decoded_claim(claim);
        json_of(edits::bound_status(&claim, &claim.document, volume)).map(|json| json["status"].clone())
    };
    let status = capacity("c 1Gi", &decoded("v 5Gi vac=gold")).unwrap();
    assert_eq!(status["phase"], "Bound");
    assert_eq!(status["capacity"], json!({ "storage": "5Gi" }));
    assert_eq!(status["accessModes"], json!(["ReadWriteOnce", "ReadOnlyMany"]));
    assert_eq!(status["currentVolumeAttributesClassName"], "gold");
    let lost = capacity("c 1Gi phase=Lost", &decoded("v 5Gi vac=gold")).unwrap();
    assert!(lost["currentVolumeAttributesClassName"].is_null(), "only a pending claim gets it");
    let bound = capacity("c 1Gi phase=Bound", &decoded("v 5Gi")).unwrap();
    assert!(bound["capacity"].is_null(), "{bound}");
    for (annotation, expected) in [("2Gi", "2Gi"), ("much", "5Gi")] {
        let annotations = json!({ "volume.alpha.kubernetes.io/pre-resize-capacity": annotation });
        let status = capacity("c 1Gi", &annotated("v 5Gi", &annotations, &Value::Null)).unwrap();
        assert_eq!(status["capacity"], json!({ "storage": expected }));
    }
}

#[test]
fn pvb_20_a_volume_without_a_capacity_is_an_error() {
    let mut json = volume("v 1Gi", own_uid);
    json["spec"]["capacity"] = json!({});
    let (claim, volume) = (decoded_claim("c 1Gi"), PersistentVolume::decode(&json.to_string()).unwrap());
    let error = edits::bound_status(&claim, &claim.document, &volume).unwrap_err();
    assert_eq!(error.to_string(), r#"PersistentVolume "v" is without a storage capacity"#);
}

#[test]
fn pvb_20_a_claim_without_a_volume_has_neither_modes_nor_capacity() {
    let mut json = super::fixtures::claim("c 1Gi phase=Bound");
    json["status"] = json!({
        "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "conditions": [],
        "currentVolumeAttributesClassName": "gold",
    });
    let claim = kcm_framework::api::views::PersistentVolumeClaim::decode(&json.to_string()).unwrap();
    let lost = json_of(edits::unbound_status(&claim, &claim.document, ClaimPhase::Lost)).unwrap();
    assert_eq!(lost["status"], json!({ "phase": "Lost", "conditions": [] }));
    let pending = decoded_claim("c 1Gi");
    assert_eq!(json_of(edits::unbound_status(&pending, &pending.document, ClaimPhase::Pending)), None);
}

#[test]
fn pvb_31_unbinding_undoes_what_the_controller_did() {
    let by_controller = json_of(edits::unbind_volume(&decoded("v 1Gi claim=c uid bbc"))).unwrap();
    assert!(by_controller["spec"]["claimRef"].is_null());
    assert!(by_controller["metadata"]["annotations"].is_null(), "an empty map is removed");
    let by_user = json_of(edits::unbind_volume(&decoded("v 1Gi claim=c uid"))).unwrap();
    assert_eq!(by_user["spec"]["claimRef"], json!({ "namespace": "shop", "name": "c" }));
}

#[test]
fn pvb_7_finalizers_follow_who_deletes_the_volume() {
    const OURS: &str = "kubernetes.io/pv-controller";
    const EXTERNAL: &str = "external-provisioner.volume.kubernetes.io/finalizer";
    let rows: [(&str, &str, Value, &str, Option<Value>); 9] = [
        ("not provisioned", "", json!([]), "Delete", None),
        ("in-tree, Delete", "kubernetes.io/host-path", json!([]), "Delete", Some(json!([OURS]))),
        ("in-tree, Delete, complete", "kubernetes.io/host-path", json!([OURS]), "Delete", None),
        ("in-tree, Retain", "kubernetes.io/host-path", json!([OURS]), "Retain", Some(Value::Null)),
        ("in-tree, external too", "kubernetes.io/host-path", json!([EXTERNAL, OURS]), "Delete", Some(json!([OURS]))),
        ("t_7 a plugin of the past", "kubernetes.io/rbd", json!([]), "Delete", Some(json!([OURS]))),
        ("a driver", "csi.example.com", json!([EXTERNAL]), "Delete", None),
        ("migrated", "kubernetes.io/gce-pd", json!([OURS, "other"]), "Delete", Some(json!(["other"]))),
        ("migrated, of others", "kubernetes.io/gce-pd", json!([EXTERNAL]), "Delete", Some(json!([EXTERNAL]))),
    ];
    for (name, by, finalizers, policy, expected) in rows {
        let annotations = if by.is_empty() { json!({}) } else { json!({ "pv.kubernetes.io/provisioned-by": by }) };
        let volume = annotated(&format!("v 1Gi policy={policy}"), &annotations, &finalizers);
        let changed = json_of(edits::volume_migration(&volume));
        assert_eq!(changed.as_ref().map(|json| json["metadata"]["finalizers"].clone()), expected, "{name}");
        let migrated = changed.map(|json| json["metadata"]["annotations"]["pv.kubernetes.io/migrated-to"].clone());
        if by == "kubernetes.io/gce-pd" {
            assert_eq!(migrated, Some(json!("pd.csi.storage.gke.io")), "{name}");
        }
    }
}

#[test]
fn t_6_a_volume_that_is_being_deleted_gets_no_finalizer() {
    let mut json = volume("v 1Gi policy=Delete by=kubernetes.io/host-path", own_uid);
    json["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    json["metadata"]["finalizers"] = json!(["kubernetes.io/pv-protection"]);
    let volume = PersistentVolume::decode(&json.to_string()).unwrap();
    assert_eq!(json_of(edits::volume_migration(&volume)), None);
}

#[test]
fn pvb_6_and_8_only_a_claim_with_the_in_tree_name_is_migrated() {
    const MIGRATED: &str = "pv.kubernetes.io/migrated-to";
    let rows = [
        (json!({}), None),
        (
            json!({ "volume.kubernetes.io/storage-provisioner": "kubernetes.io/aws-ebs" }),
            Some(json!("ebs.csi.aws.com")),
        ),
        (
            json!({ "volume.beta.kubernetes.io/storage-provisioner": "kubernetes.io/cinder" }),
            Some(json!("cinder.csi.openstack.org")),
        ),
        (json!({ "volume.kubernetes.io/storage-provisioner": "ebs.csi.aws.com" }), None),
        (json!({ "volume.kubernetes.io/storage-provisioner": "x", MIGRATED: "y" }), Some(Value::Null)),
        (json!({ "volume.kubernetes.io/storage-provisioner": "x", MIGRATED: "" }), None),
    ];
    for (annotations, expected) in rows {
        let mut json = super::fixtures::claim("c 1Gi");
        json["metadata"]["annotations"] = annotations.clone();
        let claim = kcm_framework::api::views::PersistentVolumeClaim::decode(&json.to_string()).unwrap();
        let changed = json_of(edits::claim_migration(&claim.document));
        assert_eq!(changed.map(|json| json["metadata"]["annotations"][MIGRATED].clone()), expected, "{annotations}");
    }
}

#[test]
fn pvb_55_both_annotations_name_the_provisioner_and_equal_ones_are_not_written() {
    let claim = decoded_claim("c 1Gi");
    let changed = edits::claim_provisioner(&claim.document, "csi.example.com").unwrap().unwrap();
    let annotations = Annotations::of(&changed);
    assert_eq!(annotations.get("volume.kubernetes.io/storage-provisioner"), Some("csi.example.com"));
    assert_eq!(annotations.get("volume.beta.kubernetes.io/storage-provisioner"), Some("csi.example.com"));
    assert!(edits::claim_provisioner(&changed, "csi.example.com").unwrap().is_none());
}

#[test]
fn pl_1_and_2_who_provisions_and_who_deletes() {
    let provisioner = |name: &str| match provisioner(name) {
        Ok(Actor::HostPath) => "host path".to_owned(),
        Ok(Actor::External(driver)) => driver.to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(provisioner("kubernetes.io/host-path"), "host path");
    assert_eq!(provisioner("kubernetes.io/nfs"), "no provisionable volume plugin matched");
    assert_eq!(
        provisioner("kubernetes.io/no-provisioner"),
        "no volume plugin matched name: kubernetes.io/no-provisioner"
    );
    assert_eq!(provisioner("kubernetes.io/azure-file"), "file.csi.azure.com");
    assert_eq!(provisioner("mock-provisioner.kubernetes.io"), "mock-provisioner.kubernetes.io");
    assert_eq!(driver_of("ebs.csi.aws.com"), None);
    let rows = [
        ("v 1Gi path=/tmp/a", Ok(Actor::HostPath)),
        ("v 1Gi csi", Ok(Actor::External("kubernetes.io/csi"))),
        ("v 1Gi path=/tmp/a by=csi.example.com", Ok(Actor::External("csi.example.com"))),
        ("v 1Gi nfs", Err(r#"error getting deleter volume plugin for volume "v": no deletable volume plugin matched"#)),
        ("v 1Gi", Err(r#"error getting deleter volume plugin for volume "v": no volume plugin matched"#)),
        ("v 1Gi by=kubernetes.io/rbd", Err("no volume plugin matched name: kubernetes.io/rbd")),
        ("v 1Gi by=kubernetes.io/nfs", Err("no deletable volume plugin matched")),
    ];
    for (text, expected) in rows {
        let volume = decoded(text);
        let annotations = Annotations::of(&volume.document);
        let found = deleter(&volume, &annotations).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }
}

#[test]
fn pvb_40_to_46_the_policy_decides_what_becomes_of_a_released_volume() {
    let of = |text: &str| reclaim(&decoded(text));
    assert_eq!(of("v 1Gi policy=Retain path=/tmp/a"), Reclaim::Retain);
    assert_eq!(of("v 1Gi policy=Delete path=/tmp/a"), Reclaim::Delete);
    assert_eq!(of("v 1Gi policy=Delete csi"), Reclaim::External);
    assert!(matches!(of("v 1Gi policy=Delete nfs"), Reclaim::NoDeleter(_)));
    assert_eq!(of("v 1Gi policy=Recycle nfs"), Reclaim::Recycle(Plugin::Nfs));
    assert_eq!(of("v 1Gi policy=Recycle path=/tmp/a"), Reclaim::Recycle(Plugin::HostPath));
    assert_eq!(of("v 1Gi policy=Recycle"), Reclaim::NoRecycler);
    assert_eq!(of("v 1Gi policy=Shred"), Reclaim::UnknownPolicy);
    let migrated = annotated("v 1Gi policy=Recycle nfs", &json!({ "pv.kubernetes.io/migrated-to": "x" }), &Value::Null);
    assert_eq!(reclaim(&migrated), Reclaim::External);
}

#[test]
fn pl_5_and_t_10_the_recycler_pod_has_the_source_and_whole_gibibytes_of_time() {
    let recycler = Recycler::new(default_template(), 60, 30);
    for (capacity, seconds) in [("1.9Gi", 60), ("512Mi", 60), ("2Gi", 60), ("3Gi", 90), ("10Gi", 300)] {
        let pod = recycler.pod(&decoded(&format!("v {capacity} path=/tmp/a")), Plugin::HostPath);
        assert_eq!(pod["spec"]["activeDeadlineSeconds"], seconds, "{capacity}");
        assert_eq!(pod["spec"]["volumes"], json!([{ "name": "vol", "hostPath": { "path": "/tmp/a" } }]));
        assert_eq!(pod["metadata"]["name"], "recycler-for-v");
        assert_eq!(pod["metadata"]["namespace"], "default");
        assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "uid-v");
        assert!(pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"].is_null());
    }
    let pod = recycler.pod(&decoded("v 1Gi nfs"), Plugin::Nfs);
    let source = json!({ "server": "files.example.com", "path": "/export" });
    assert_eq!(pod["spec"]["volumes"], json!([{ "name": "vol", "nfs": source }]));
    // Each volume has a copy of its own.
    assert_eq!(recycler, Recycler::new(default_template(), 60, 30));
}

#[test]
fn pl_12_a_template_is_a_pod_with_a_volume() {
    let error = |text: &str| parse_template("flag", "/a", text).unwrap_err().to_string();
    assert_eq!(error("kind: Pod\nspec: {}"), "pod specification (/a): does not contain any volume(s)");
    assert!(error("kind: Job").contains("--flag"));
    assert!(error("").contains("--flag"));
    let yaml = "apiVersion: v1\nkind: Pod\nmetadata: { namespace: scrub }\nspec: { volumes: [{ name: data }] }\n";
    let recycler = Recycler::new(parse_template("flag", "/a", yaml).unwrap(), 1, 1);
    let pod = recycler.pod(&decoded("v 1Gi path=/tmp/a"), Plugin::HostPath);
    assert_eq!((&pod["metadata"]["namespace"], &pod["spec"]["volumes"][0]["name"]), (&json!("scrub"), &json!("data")));
}

#[test]
fn t_8_and_b_6_only_paths_beneath_tmp_are_deleted() {
    for path in ["/var/tmp/x", "/data/tmp/y", "/tmp", "/tmp/", "/tmp/../etc", "/tmp/a/../..", "tmp/a", "", "/"] {
        assert_eq!(beneath_temporary(path), None, "{path}");
        assert!(host_path::delete(path).unwrap_err().to_string().contains("only supports /tmp/.+"), "{path}");
    }
    assert_eq!(beneath_temporary("/tmp/../tmp/./a//b").unwrap().to_str(), Some("/tmp/a/b"));
}

#[test]
fn b_6_a_link_is_not_followed_out_of_tmp() {
    let own = format!("/tmp/kcm-binder-{}", std::process::id());
    let outside = std::env::current_dir().unwrap();
    host_path::create(&format!("{own}/dir/inner")).unwrap();
    std::os::unix::fs::symlink(&outside, format!("{own}/link")).unwrap();
    assert!(host_path::delete(&format!("{own}/link/Cargo.toml")).is_err(), "the parent leads out");
    host_path::delete(&format!("{own}/link")).unwrap();
    assert!(outside.join("Cargo.toml").exists());
    host_path::delete(&own).unwrap();
    assert!(!std::path::Path::new(&own).exists());
    host_path::delete(&own).unwrap();
    host_path::delete(&format!("{own}/absent/inner")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn pvb_5_an_operation_backs_off_from_half_a_second_to_two_minutes() {
    let (back_offs, key) = (BackOffs::default(), ObjectKey::cluster_scoped("v"));
    let mut now = Instant::now();
    assert_eq!(back_offs.wait(&key, now), None);
    let mut delays = Vec::new();
    for _ in 0..10 {
        delays.push(back_offs.failed(&key, now).as_millis());
        assert!(back_offs.wait(&key, now).is_some());
        now += *delays.last().map(|delay| Duration::from_millis(u64::try_from(*delay).unwrap())).as_ref().unwrap();
        assert_eq!(back_offs.wait(&key, now), None);
    }
    assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 122_000, 122_000]);
    back_offs.forget(&key);
    assert_eq!(back_offs.failed(&key, now).as_millis(), 500);
}

#[tokio::test(start_paused = true)]
async fn b_8_an_event_is_repeated_if_it_differs_or_is_old() {
    let (events, key, now) = (LastEvents::default(), ObjectKey::cluster_scoped("v"), Instant::now());
    let (first, other) = (BinderEvent::no_volume(), BinderEvent::waits_for_consumer(&[]));
    assert!(events.is_due(&key, &first, now));
    assert!(!events.is_due(&key, &first, now + Duration::from_secs(599)));
    assert!(events.is_due(&key, &other, now));
    assert!(!events.is_due(&key, &first, now), "an event of another reason does not count");
    assert!(events.is_due(&key, &BinderEvent::already_bound("v"), now), "the message differs");
    assert!(events.is_due(&key, &other, now + Duration::from_mins(10)));
}

#[test]
fn b_1_a_volume_enqueues_the_claims_that_wait_for_the_longest_time_and_the_next_volume_others() {
    let mut waiting = WaitingClaims::default();
    let key = |number: usize| ObjectKey::namespaced("shop", format!("c-{number}"));
    (0..20).for_each(|number| waiting.add(&key(number), "gold", true));
    waiting.add(&key(99), "gold", false);
    assert_eq!(waiting.wake("silver"), []);
    assert_eq!(waiting.wake("gold"), (0..8).map(key).collect::<Vec<_>>());
    waiting.add(&key(0), "gold", true);
    waiting.remove(&key(8));
    assert_eq!(waiting.wake("gold"), (9..17).map(key).collect::<Vec<_>>());
    assert_eq!(waiting.wake("gold"), [key(17), key(18), key(19), key(0)]);
    assert_eq!(waiting.of_class("gold").len(), 20, "a change of the class enqueues all");
    assert!(waiting.contains(&key(99)) && !waiting.contains(&key(8)));
}
