//! Evictions from devices, claims and Pods.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::views::{ClaimDevices, PodClaims, ResourceClaim};
use serde_json::{Value, json};

use super::{START, claim_view, needs, pod_view, rule, rule_view, slice, slice_view, taint};
use crate::device_taint_eviction::plan::{Eviction, Origin, PodInUse, Slices, Taints, evict_pod};
use crate::tests::allocation;

fn taints(rules: &[Value], slices: &[Value]) -> Taints {
    Taints { rules: rules.iter().map(rule_view).collect(), slices: Slices::Of(slices.iter().map(slice_view).collect()) }
}

fn claim(tolerations: &Value) -> Arc<ResourceClaim> {
    let metadata = json!({ "namespace": "shop", "name": "c" });
    let reserved = json!([{ "resource": "pods", "name": "web", "uid": "u" }]);
    claim_view(&json!({
        "metadata": metadata,
        "status": { "allocation": allocation("d0", tolerations), "reservedFor": reserved },
    }))
}

fn evict(taints: &Taints, tolerations: &Value) -> Option<Eviction> {
    let needs = needs();
    taints.evict_from_claim(needs.reader::<ClaimDevices>().unwrap().of(&claim(tolerations)))
}

/// Seconds from the start to the eviction.
fn seconds(eviction: Option<&Eviction>) -> Option<i64> {
    let start: Timestamp = START.parse().unwrap();
    eviction.map(|eviction| eviction.due.duration_since(start).as_secs())
}

fn toleration(key: &str, effect: &str, seconds: Option<i64>) -> Value {
    let mut toleration = json!({ "key": key, "operator": "Exists", "effect": effect });
    if let Some(seconds) = seconds {
        toleration["tolerationSeconds"] = json!(seconds);
    }
    toleration
}

#[test]
fn s58_a_taint_evicts_when_the_fewest_tolerated_seconds_are_over() {
    let tainted = taints(&[], &[slice("s", 1, &json!([{ "name": "d0", "taints": [taint("k", "NoExecute")] }]))]);
    let (all, forever) = (|seconds| toleration("k", "NoExecute", Some(seconds)), toleration("k", "NoExecute", None));
    for (name, tolerations, expected) in [
        ("not tolerated", json!([]), Some(0)),
        ("tolerated for a time", json!([all(30)]), Some(30)),
        ("t36: the fewest seconds of all", json!([all(300), all(30), all(60)]), Some(30)),
        ("t36: for ever wins, wherever it is", json!([all(30), forever]), None),
        ("negative seconds", json!([all(-5)]), Some(0)),
        ("another key", json!([toleration("l", "NoExecute", None)]), Some(0)),
        ("t35: an empty effect", json!([toleration("k", "", None)]), Some(0)),
        ("another effect", json!([toleration("k", "NoSchedule", None)]), Some(0)),
        ("any key", json!([toleration("", "NoExecute", None)]), None),
        ("equal value", json!([{ "key": "k", "operator": "Equal", "effect": "NoExecute" }]), None),
        ("other value", json!([{ "key": "k", "value": "v", "effect": "NoExecute" }]), Some(0)),
    ] {
        assert_eq!(seconds(evict(&tainted, &tolerations).as_ref()), expected, "{name}");
    }
    let longest = evict(&tainted, &json!([all(i64::MAX)])).unwrap();
    assert_eq!(longest.due, Timestamp::MAX, "a time that the clock does not reach");
}

#[test]
fn s57_taints_come_from_the_newest_slices_and_from_rules() {
    let device = |name: &str, effect: &str| json!([{ "name": name, "taints": [taint("k", effect)] }]);
    let clean = || json!([{ "name": "d0" }]);
    let of_rule = |selector: Value, effect: &str| rule("r", &selector, &taint("k", effect));
    let named = |driver: &str, pool: &str, device: &str| json!({ "driver": driver, "pool": pool, "device": device });
    for (name, rules, slices, is_evicted) in [
        ("tainted", vec![], vec![slice("s", 1, &device("d0", "NoExecute"))], true),
        ("another effect", vec![], vec![slice("s", 1, &device("d0", "NoSchedule"))], false),
        ("no effect", vec![], vec![slice("s", 1, &device("d0", "None"))], false),
        ("another device", vec![], vec![slice("s", 1, &device("d1", "NoExecute"))], false),
        (
            "s56: of an old generation",
            vec![],
            vec![slice("s", 1, &device("d0", "NoExecute")), slice("t", 2, &clean())],
            false,
        ),
        (
            "s56: of the new generation",
            vec![],
            vec![slice("s", 1, &clean()), slice("t", 2, &device("d0", "NoExecute"))],
            true,
        ),
        ("no published device", vec![], vec![], false),
        ("rule without selector", vec![of_rule(Value::Null, "NoExecute")], vec![], false),
        ("rule for all", vec![of_rule(json!({}), "NoExecute")], vec![], true),
        ("rule for the device", vec![of_rule(named("gpu.example.com", "a", "d0"), "NoExecute")], vec![], true),
        ("rule for another driver", vec![of_rule(json!({ "driver": "nic.example.com" }), "NoExecute")], vec![], false),
        ("rule for another pool", vec![of_rule(json!({ "pool": "b" }), "NoExecute")], vec![], false),
        ("rule for another device", vec![of_rule(named("gpu.example.com", "a", "d1"), "NoExecute")], vec![], false),
    ] {
        assert_eq!(evict(&taints(&rules, &slices), &json!([])).is_some(), is_evicted, "{name}");
    }
}

#[test]
fn s58_the_earliest_time_and_all_reasons_count() {
    let mut later = taint("l", "NoExecute");
    later["timeAdded"] = json!("2026-01-02T12:01:00Z");
    let tainted = taints(
        &[rule("r", &json!({}), &later)],
        &[slice("s", 1, &json!([{ "name": "d0", "taints": [taint("k", "NoExecute"), taint("m", "NoExecute")] }]))],
    );
    let tolerated = json!([toleration("k", "NoExecute", Some(90)), toleration("m", "NoExecute", None)]);
    let eviction = evict(&tainted, &tolerated).unwrap();
    assert_eq!(seconds(Some(&eviction)), Some(60));
    let names: Vec<&str> = eviction
        .origins
        .iter()
        .map(|origin| match origin {
            Origin::Rule { name, .. } | Origin::Slice { name } => name.as_str(),
        })
        .collect();
    assert_eq!(names, ["r", "s"], "rules come first");
    let without_time = taints(&[rule("r", &json!({}), &json!({ "key": "k", "effect": "NoExecute" }))], &[]);
    assert_eq!(evict(&without_time, &json!([])), None);
    let start: Timestamp = START.parse().unwrap();
    assert_eq!(eviction.due, start + SignedDuration::from_secs(60));
}

#[test]
fn s59_a_pod_is_due_by_claims_that_are_its_own_and_reserved_for_it() {
    let of_user = json!({ "nodeName": "n", "resourceClaims": [{ "name": "gpu", "resourceClaimName": "c" }] });
    let of_template =
        json!({ "nodeName": "n", "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "t" }] });
    let named = json!({ "resourceClaimStatuses": [{ "name": "gpu", "resourceClaimName": "c" }] });
    let extended = json!({ "extendedResourceClaimStatus": { "resourceClaimName": "c" } });
    let with = |mut spec: Value, field: &str, value: Value| {
        spec[field] = value;
        spec
    };
    let in_group = with(of_template.clone(), "schedulingGroup", json!({ "podGroupName": "g" }));
    let owner = |api: &str, kind: &str, name: &str, uid: &str| json!([{ "apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": true }]);
    let (own, foreign) = (owner("v1", "Pod", "web", "u"), owner("v1", "Pod", "web", "v"));
    let of_group = owner("scheduling.k8s.io/v1beta1", "PodGroup", "g", "gu");
    let for_pod = |uid: &str| json!([{ "resource": "pods", "name": "web", "uid": uid }]);
    let for_group = json!([{ "apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "gu" }]);
    let running = json!({});
    for (name, spec, status, owners, reserved, is_evicted) in [
        ("of the user", &of_user, &running, &json!([]), &for_pod("u"), true),
        ("finished", &of_user, &json!({ "phase": "Succeeded" }), &json!([]), &for_pod("u"), true),
        ("not scheduled", &with(of_user.clone(), "nodeName", json!("")), &running, &json!([]), &for_pod("u"), false),
        ("reserved for another", &of_user, &running, &json!([]), &for_pod("v"), false),
        ("of a template", &of_template, &named, &own, &for_pod("u"), true),
        ("no name yet", &of_template, &running, &own, &for_pod("u"), false),
        ("of another pod", &of_template, &named, &foreign, &for_pod("u"), false),
        ("extended", &json!({ "nodeName": "n" }), &extended, &own, &for_pod("u"), true),
        ("extended, of another pod", &json!({ "nodeName": "n" }), &extended, &foreign, &for_pod("u"), false),
        ("of a group", &in_group, &named, &of_group, &for_group, true),
        ("of no group", &of_template, &named, &of_group, &for_group, false),
    ] {
        let metadata = json!({ "namespace": "shop", "name": "web", "uid": "u" });
        let pod = pod_view(&json!({ "metadata": metadata, "spec": spec, "status": status }));
        let claim = claim_view(&json!({
            "metadata": { "namespace": "shop", "name": "c", "ownerReferences": owners },
            "status": { "allocation": allocation("d0", &json!([])), "reservedFor": reserved },
        }));
        let needs = needs();
        let claims = needs.reader::<PodClaims>().unwrap().of(&pod);
        let in_use = PodInUse { pod: &pod, claims, group: claims.group.as_deref() };
        let tainted = taints(&[rule("r", &json!({}), &taint("k", "NoExecute"))], &[]);
        let eviction =
            evict_pod(in_use, &tainted, needs.reader().unwrap(), |name| (name == "c").then(|| Arc::clone(&claim)));
        assert_eq!(eviction.is_some(), is_evicted, "{name}");
    }
}
