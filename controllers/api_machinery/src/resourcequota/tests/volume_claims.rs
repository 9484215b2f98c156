//! What persistent volume claims add to the usage of a quota.

use std::sync::Arc;

use kcm_framework::api::views::PersistentVolumeClaim;
use serde_json::{Value, json};

use super::{GATES, decode, used};
use crate::resourcequota::evaluator::Evaluator;
use crate::resourcequota::evaluator::volume_claims::{VolumeClaimConstraint, replenishes};
use crate::resourcequota::observe::Content;
use crate::resourcequota::settings::Gates;

fn claim(storage: &str, fields: &Value, status: &Value) -> Arc<PersistentVolumeClaim> {
    let mut spec = fields.clone();
    spec["resources"] = json!({ "requests": { "storage": storage } });
    decode(&json!({ "metadata": { "namespace": "shop", "name": "claim" }, "spec": spec, "status": status }))
}

fn usage(constraints: &[&str], spec: Value, claim: Arc<PersistentVolumeClaim>, gates: Gates) -> Vec<String> {
    used(constraints, spec, Evaluator::VolumeClaims, Content::VolumeClaims(vec![claim]), gates)
}

#[test]
fn a_claim_counts_for_its_storage_class_too() {
    let all = [
        "count/persistentvolumeclaims",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
        "gold.storageclass.storage.k8s.io/requests.storage",
        "lead.storageclass.storage.k8s.io/requests.storage",
        "persistentvolumeclaims",
        "requests.storage",
    ];
    let annotated = decode(&json!({
        "metadata": { "annotations": { "volume.beta.kubernetes.io/storage-class": "gold" } },
        "spec": { "storageClassName": "lead", "resources": { "requests": { "storage": "1Gi" } } },
    }));
    for (name, claim, [gold, gold_storage, lead_storage, storage]) in [
        ("no class", claim("1Gi", &json!({}), &json!({})), ["0", "0", "0", "1Gi"]),
        ("an empty class", claim("1Gi", &json!({ "storageClassName": "" }), &json!({})), ["0", "0", "0", "1Gi"]),
        ("a class", claim("1Gi", &json!({ "storageClassName": "gold" }), &json!({})), ["1", "1Gi", "0", "1Gi"]),
        ("the annotation goes before the field", annotated, ["1", "1Gi", "0", "1Gi"]),
        (
            "a broken number of bytes is rounded up",
            claim("10.1", &json!({ "storageClassName": "lead" }), &json!({})),
            ["0", "0", "11", "11"],
        ),
        ("no storage", decode(&json!({ "metadata": {} })), ["0", "0", "0", "0"]),
    ] {
        let expected = [
            format!("{}=1", all[0]),
            format!("{}={gold}", all[1]),
            format!("{}={gold_storage}", all[2]),
            format!("{}={lead_storage}", all[3]),
            format!("{}=1", all[4]),
            format!("{}={storage}", all[5]),
        ];
        assert_eq!(usage(&all, json!({}), claim, GATES), expected, "{name}");
    }
}

#[test]
fn what_was_allocated_for_an_expansion_counts_where_it_is_more() {
    let allocated = |storage: &str| json!({ "allocatedResources": { "storage": storage } });
    for (status, with_gate, without_gate) in [
        (allocated("2Gi"), "requests.storage=2Gi", "requests.storage=1Gi"),
        (allocated("512Mi"), "requests.storage=1Gi", "requests.storage=1Gi"),
        (allocated("1073741824.5"), "requests.storage=1073741825", "requests.storage=1Gi"),
    ] {
        for (recover_volume_expansion, expected) in [(true, with_gate), (false, without_gate)] {
            let gates = Gates { recover_volume_expansion, ..GATES };
            assert_eq!(usage(&["requests.storage"], json!({}), claim("1Gi", &json!({}), &status), gates), [expected]);
        }
    }
}

#[test]
fn a_claim_counts_where_one_of_its_volume_attributes_classes_is_in_the_scope() {
    let scope = |operator: &str, values: &[&str]| {
        json!({ "scopeSelector": { "matchExpressions": [
            { "scopeName": "VolumeAttributesClass", "operator": operator, "values": values },
        ] } })
    };
    let none = claim("1", &json!({}), &json!({}));
    let gold = claim("1", &json!({ "volumeAttributesClassName": "gold" }), &json!({}));
    let from_gold_to_lead = claim(
        "1",
        &json!({ "volumeAttributesClassName": "lead" }),
        &json!({
            "currentVolumeAttributesClassName": "gold",
            "modifyVolumeStatus": { "targetVolumeAttributesClassName": "lead", "status": "Pending" },
        }),
    );
    let to_lead =
        claim("1", &json!({}), &json!({ "modifyVolumeStatus": { "targetVolumeAttributesClassName": "lead" } }));
    for (name, spec, claim, is_counted) in [
        ("the scope by name", json!({ "scopes": ["VolumeAttributesClass"] }), &gold, true),
        ("the scope by name, without a class", json!({ "scopes": ["VolumeAttributesClass"] }), &none, false),
        ("exists", scope("Exists", &[]), &gold, true),
        ("in", scope("In", &["gold"]), &gold, true),
        ("in another", scope("In", &["lead"]), &gold, false),
        ("the current one", scope("In", &["gold"]), &from_gold_to_lead, true),
        ("the target", scope("In", &["lead"]), &to_lead, true),
        ("any of them is another", scope("NotIn", &["gold"]), &from_gold_to_lead, true),
        ("not in, without a class", scope("NotIn", &["gold"]), &none, true),
        ("does not exist", scope("DoesNotExist", &[]), &none, true),
        ("does not exist, and does", scope("DoesNotExist", &[]), &gold, false),
        ("a scope of pods", json!({ "scopes": ["BestEffort"] }), &gold, false),
        ("no scope", json!({}), &none, true),
    ] {
        let expected = [format!("persistentvolumeclaims={}", u8::from(is_counted))];
        assert_eq!(usage(&["persistentvolumeclaims"], spec, Arc::clone(claim), GATES), expected, "{name}");
    }
    let gates = Gates { volume_attributes_class: false, ..GATES };
    let found = usage(&["persistentvolumeclaims"], scope("Exists", &[]), gold, gates);
    assert_eq!(found, ["persistentvolumeclaims=0"], "without the gate no claim is in any scope");
}

#[test]
fn only_constraints_of_claims_are_counted() {
    for constraint in
        ["storage", "gold.storageclass.storage.k8s.io/count/persistentvolumeclaims", "requests.cpu", "pods"]
    {
        assert_eq!(VolumeClaimConstraint::parse(constraint), None, "{constraint}");
    }
}

#[test]
fn an_update_replenishes_where_it_changes_size_or_class() {
    let base = claim("2Gi", &json!({}), &json!({}));
    for (name, new, expected) in [
        ("nothing", claim("2Gi", &json!({ "volumeName": "volume" }), &json!({ "phase": "Bound" })), false),
        ("the same size in other words", claim("2048Mi", &json!({}), &json!({})), false),
        ("less is requested", claim("1Gi", &json!({}), &json!({})), true),
        ("more is allocated", claim("2Gi", &json!({}), &json!({ "allocatedResources": { "storage": "3Gi" } })), true),
        ("less is allocated", claim("2Gi", &json!({}), &json!({ "allocatedResources": { "storage": "1Gi" } })), false),
        ("a class", claim("2Gi", &json!({ "volumeAttributesClassName": "gold" }), &json!({})), true),
    ] {
        assert_eq!(replenishes(&base, &new, GATES), expected, "{name}");
    }
    let gates = Gates { volume_attributes_class: false, recover_volume_expansion: false, ..GATES };
    let gold = claim("2Gi", &json!({ "volumeAttributesClassName": "gold" }), &json!({}));
    assert!(!replenishes(&base, &gold, gates), "without the gate");
}
