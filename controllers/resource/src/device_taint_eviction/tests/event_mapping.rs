//! Keys that changes enqueue.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{Pod, PodClaims, ResourceClaim};
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::{claim_view, needs, pod_view, rule, rule_view, slice, slice_view, taint};
use crate::device_taint_eviction::event_mapping::{change_of_rule, devices_of_slice, key_for_pod, keys_for_claim};
use crate::device_taint_eviction::plan::Slices;
use crate::tests::key;

fn pod(node: &str, status: &Value) -> Value {
    json!({
        "metadata": { "namespace": "shop", "name": "web", "uid": "u" },
        "spec": { "nodeName": node, "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "t" }] },
        "status": status,
    })
}

#[test]
fn s60_a_pod_is_enqueued_by_what_decides() {
    let named = || json!({ "resourceClaimStatuses": [{ "name": "gpu", "resourceClaimName": "c" }] });
    let added = |pod: Value| Change::Added(pod_view(&pod));
    let updated = |old: Value, new: Value| Change::Updated { old: pod_view(&old), new: pod_view(&new) };
    let conditions = || {
        let mut status = named();
        status["conditions"] = json!([{ "type": "DisruptionTarget", "status": "True" }]);
        status
    };
    let mut recreated = pod("n", &named());
    recreated["metadata"]["uid"] = json!("v");
    let without = json!({ "metadata": { "namespace": "shop", "name": "web" }, "spec": { "nodeName": "n" } });
    let deleted = |pod: Value| Change::<Pod>::Deleted { last: pod_view(&pod), final_state_known: true };
    for (name, change, is_tainted, is_enqueued) in [
        ("added with a tainted claim", added(pod("n", &named())), true, true),
        ("added with another claim", added(pod("n", &named())), false, false),
        ("added without a node", added(pod("", &named())), true, false),
        ("added without claims", added(without.clone()), true, false),
        ("assigned", updated(pod("", &named()), pod("n", &named())), false, true),
        ("named", updated(pod("n", &json!({})), pod("n", &named())), false, true),
        ("status only", updated(pod("n", &named()), pod("n", &conditions())), true, false),
        ("t38: recreated", updated(pod("n", &named()), recreated), false, true),
        ("deleted", deleted(pod("n", &named())), false, true),
        ("deleted without claims", deleted(without), true, false),
    ] {
        let needs = needs();
        let found = key_for_pod(&change, needs.reader::<PodClaims>().unwrap(), |_| is_tainted);
        assert_eq!(found, is_enqueued.then(|| key("web")), "{name}");
    }
}

#[test]
fn s60_a_tainted_claim_enqueues_its_consumers() {
    let claim = |name: &str, uids: &[&str]| {
        let mut reserved: Vec<Value> =
            uids.iter().map(|uid| json!({ "resource": "pods", "name": uid, "uid": uid })).collect();
        reserved.push(json!({ "apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "gu" }));
        reserved.push(json!({ "apiGroup": "example.com", "resource": "pods", "name": "other", "uid": "x" }));
        claim_view(&json!({ "metadata": { "namespace": "shop", "name": name }, "status": { "reservedFor": reserved } }))
    };
    let keys = |change: Change<ResourceClaim>, tainted: &str| -> Vec<String> {
        let is_tainted = |claim: &ResourceClaim| claim.metadata.key.name() == tainted;
        let keys = keys_for_claim(&change, is_tainted, |_: &ObjectKey| vec![key("member")]);
        keys.iter().map(|key| key.name().to_owned()).collect()
    };
    assert_eq!(keys(Change::Added(claim("c", &["a"])), "c"), ["a", "member"]);
    assert_eq!(keys(Change::Added(claim("c", &["a"])), "d"), [""; 0]);
    let updated = || Change::Updated { old: claim("c", &["a", "b"]), new: claim("c", &["b"]) };
    assert_eq!(keys(updated(), "c"), ["a", "b", "member"]);
    assert_eq!(keys(Change::Deleted { last: claim("c", &["a"]), final_state_known: true }, "c"), ["a", "member"]);
}

#[test]
fn s60_a_slice_enqueues_by_devices_whose_taints_change() {
    let tainted = |name: &str| json!({ "name": name, "taints": [taint("k", "NoExecute")] });
    let other = |name: &str| json!({ "name": name, "taints": [taint("k", "NoSchedule")] });
    let clean = |name: &str| json!({ "name": name });
    let of = |generation: i64, devices: Value| slice_view(&slice("s", generation, &devices));
    let changed = |old: Value, new: Value| Change::Updated { old: of(1, old), new: of(1, new) };
    let in_pool = |devices: Value| Slices::Of(vec![slice_view(&slice("t", 3, &devices))]);
    let none = || Slices::Of(Vec::new());
    for (name, change, slices, devices) in [
        ("added", Change::Added(of(1, json!([tainted("d0"), clean("d1")]))), none(), &["d0"][..]),
        ("added beside others", Change::Added(of(1, json!([clean("d1")]))), in_pool(json!([tainted("d2")])), &["d2"]),
        ("deleted", Change::Deleted { last: of(1, json!([tainted("d0")])), final_state_known: true }, none(), &["d0"]),
        (
            "tainted",
            changed(json!([clean("d0"), tainted("d1")]), json!([tainted("d0"), tainted("d1")])),
            none(),
            &["d0"],
        ),
        ("no longer tainted", changed(json!([tainted("d0")]), json!([clean("d0")])), none(), &["d0"]),
        ("another effect", changed(json!([clean("d0")]), json!([other("d0")])), none(), &[]),
        ("device removed", changed(json!([tainted("d0")]), json!([])), none(), &["d0"]),
        ("nothing", changed(json!([tainted("d0")]), json!([tainted("d0")])), none(), &[]),
        (
            "another generation",
            Change::Updated { old: of(1, json!([tainted("d0")])), new: of(2, json!([tainted("d0")])) },
            in_pool(json!([tainted("d2")])),
            &["d0", "d2"],
        ),
    ] {
        let found: Vec<String> =
            devices_of_slice(&change, &slices).iter().map(|(_, _, device)| device.to_string()).collect();
        assert_eq!(found, devices, "{name}");
    }
}

#[test]
fn s63_a_rule_is_shown_when_its_spec_changes() {
    let of = |effect: &str| rule("r", &json!({}), &taint("k", effect));
    let mut shown = of("NoExecute");
    shown["status"] = json!({ "conditions": [{ "type": "EvictionInProgress", "status": "True" }] });
    let mut recreated = of("NoExecute");
    recreated["metadata"]["uid"] = json!("another");
    let view = |rule: &Value| rule_view(rule);
    let updated = |old: &Value, new: &Value| Change::Updated { old: view(old), new: view(new) };
    for (name, change, computes_status, evicting) in [
        ("added", Change::Added(view(&of("NoExecute"))), true, 1),
        ("added without effect", Change::Added(view(&of("None"))), true, 0),
        ("gets its effect", updated(&of("None"), &of("NoExecute")), true, 1),
        ("loses its effect", updated(&of("NoExecute"), &of("None")), true, 1),
        ("status only", updated(&of("NoExecute"), &shown), false, 0),
        ("t38: recreated", updated(&of("NoExecute"), &recreated), true, 2),
        ("deleted", Change::Deleted { last: view(&of("NoExecute")), final_state_known: true }, true, 1),
    ] {
        let effect = change_of_rule(&change);
        assert_eq!((effect.computes_status, effect.evicting.len()), (computes_status, evicting), "{name}");
    }
}
