//! Tables of the plan and of the event mapping.

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::{claim, volume};
use crate::persistentvolume_expander::event_mapping::key_for_claim;
use crate::persistentvolume_expander::plan::{Plan, is_bound_to, plan};
use crate::shared::migration::MIGRATIONS;

fn bound(capacity: &str) -> Value {
    json!({ "phase": "Bound", "capacity": { "storage": capacity } })
}

#[test]
fn xp_3_to_5_the_source_of_the_volume_decides_who_expands_it() {
    let (ebs, csi) = (json!({ "awsElasticBlockStore": { "volumeID": "vol-1" } }), json!({ "csi": { "driver": "d" } }));
    let flex = json!({ "flexVolume": { "driver": "vendor/driver" } });
    let of_flex = || Plan::Flex { driver: "vendor/driver".to_owned() };
    let annotated = Some("1Gi");
    for (name, request, capacity, before, source, expected) in [
        ("a claim that has what it requests", "1Gi", "1Gi", None, &ebs, Plan::Nothing),
        ("a request that was lowered", "1Gi", "2Gi", None, &flex, Plan::Nothing),
        ("a migrated source", "2Gi", "1Gi", None, &ebs, Plan::Migrated(&MIGRATIONS[0])),
        ("CSI", "2Gi", "1Gi", None, &csi, Plan::External),
        ("a source that cannot grow", "2Gi", "1Gi", None, &json!({ "nfs": { "server": "a" } }), Plan::External),
        ("a flex volume", "2Gi", "1Gi", None, &flex, of_flex()),
        ("a flex volume that the kubelet has expanded", "2Gi", "2Gi", annotated, &flex, of_flex()),
        ("CSI that the kubelet has expanded", "2Gi", "2Gi", annotated, &csi, Plan::External),
    ] {
        assert_eq!(plan(&claim(request, &bound(capacity)), &volume("1Gi", before, source)), expected, "{name}");
    }
}

#[test]
fn xp_2_a_volume_is_bound_to_a_claim_of_its_namespace_and_uid() {
    let claim = claim("1Gi", &bound("1Gi"));
    let bound = |reference: Value| {
        let volume = json!({ "metadata": { "name": "pv" }, "spec": { "claimRef": reference } });
        is_bound_to(&PersistentVolume::decode(&volume.to_string()).unwrap(), &claim)
    };
    assert!(bound(json!({ "namespace": "shop", "name": "data", "uid": "1" })));
    assert!(bound(json!({ "namespace": "shop", "name": "other", "uid": "1" })), "the uid decides");
    assert!(!bound(json!({ "namespace": "shop", "name": "data", "uid": "2" })), "it was recreated");
    assert!(!bound(json!({ "namespace": "shop", "name": "data" })), "it is reserved");
    assert!(!bound(json!({ "namespace": "other", "name": "data", "uid": "1" })));
    assert!(!bound(Value::Null));
}

#[test]
fn xp_1_a_bound_claim_is_enqueued_when_it_grows() {
    let of = |request: &str, status: &Value| Arc::new(claim(request, status));
    let old = of("1Gi", &bound("1Gi"));
    let is_enqueued = |change: &Change<PersistentVolumeClaim>| key_for_claim(change).is_some();
    let updated = |new: Arc<PersistentVolumeClaim>| Change::Updated { old: Arc::clone(&old), new };
    assert!(is_enqueued(&Change::Added(Arc::clone(&old))));
    assert!(is_enqueued(&updated(of("2Gi", &bound("1Gi")))), "the request grows");
    assert!(is_enqueued(&updated(of("1Gi", &bound("2Gi")))), "the capacity grows");
    let pending = json!({ "phase": "Pending" });
    for (name, change) in [
        ("nothing changes", updated(of("1Gi", &bound("1Gi")))),
        ("in another notation", updated(of("1024Mi", &bound("1Gi")))),
        ("the request shrinks", updated(of("512Mi", &bound("1Gi")))),
        ("it is not bound", Change::Added(of("1Gi", &pending))),
        ("it grows and is not bound", updated(of("2Gi", &pending))),
        ("it is deleted", Change::Deleted { last: Arc::clone(&old), final_state_known: true }),
        ("it cannot be decoded", Change::Undecodable { last: Arc::clone(&old) }),
    ] {
        assert!(!is_enqueued(&change), "{name}");
    }
    let mut recreated = claim("1Gi", &bound("1Gi"));
    recreated.view.metadata.uid = "2".into();
    assert!(is_enqueued(&updated(Arc::new(recreated))), "it was recreated");
}
