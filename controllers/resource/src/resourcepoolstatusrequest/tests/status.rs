//! Statuses of requests, by slices and claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::InternedStr;
use kcm_framework::api::views::{ClaimDevices, ResourceClaim};
use serde_json::{Value, json};

use super::{needs, request, request_view, slice, slices};
use crate::resourcepoolstatusrequest::pool::InUse;
use crate::resourcepoolstatusrequest::status::{Computed, Observed, compute};
use crate::shared::DeviceTaintRule;
use crate::tests::view;

const NOW: &str = "2026-01-02T12:00:00Z";

fn in_use(results: &Value) -> BTreeMap<InternedStr, InUse> {
    let needs = needs();
    let claim =
        json!({ "metadata": { "name": "c" }, "status": { "allocation": { "devices": { "results": results } } } });
    let claim: Arc<ResourceClaim> = view(&claim, &needs);
    let mut by_pool: BTreeMap<InternedStr, InUse> = BTreeMap::new();
    for device in &needs.reader::<ClaimDevices>().unwrap().of(&claim).results {
        by_pool.entry(device.pool.clone()).or_default().add(device);
    }
    by_pool
}

fn result(pool: &str, device: &str) -> Value {
    json!({ "driver": "gpu.example.com", "pool": pool, "device": device })
}

fn computed(spec: &Value, published: &[Value], used: &Value, rules: &[Value]) -> Computed {
    let (slices, in_use) = (slices(published), in_use(used));
    let rules: Vec<Arc<DeviceTaintRule>> = rules.iter().map(|rule| view(rule, &needs())).collect();
    let observed = Observed { slices: &slices, in_use: &in_use, rules: &rules };
    let now: Timestamp = NOW.parse().unwrap();
    compute(&request_view(&request(spec)), &observed, now)
}

fn status(spec: &Value, published: &[Value], used: &Value, rules: &[Value]) -> Value {
    match computed(spec, published, used, rules) {
        Computed::Status { status, .. } => status,
        Computed::Incomplete => panic!("the pools are complete"),
    }
}

fn devices(names: &[&str]) -> Value {
    names.iter().map(|name| json!({ "name": name })).collect()
}

#[test]
fn s88_a_status_has_the_pools_and_its_condition() {
    let published = [slice("s", "b", 3, 1, &devices(&["d0"])), slice("t", "a", 1, 1, &devices(&["d0", "d1"]))];
    let counts = |pool: &str, generation: i64, total: i64| {
        json!({
            "driver": "gpu.example.com", "poolName": pool, "generation": generation, "resourceSliceCount": 1,
            "totalDevices": total, "allocatedDevices": 0, "availableDevices": total, "unavailableDevices": 0,
        })
    };
    let condition = |message: &str| {
        json!([{
            "type": "Complete", "status": "True", "reason": "CalculationComplete", "message": message,
            "lastTransitionTime": NOW,
        }])
    };
    let all = json!({
        "poolCount": 2, "pools": [counts("a", 1, 2), counts("b", 3, 1)],
        "conditions": condition("Calculated status for 2 pools"),
    });
    assert_eq!(status(&json!({}), &published, &json!([]), &[]), all);
    let limited = json!({
        "poolCount": 2, "pools": [counts("a", 1, 2)], "conditions": condition("Calculated status for 1 pools"),
    });
    assert_eq!(status(&json!({ "limit": 1 }), &published, &json!([]), &[]), limited);
    let filtered = json!({
        "poolCount": 1, "pools": [counts("b", 3, 1)], "conditions": condition("Calculated status for 1 pools"),
    });
    assert_eq!(status(&json!({ "poolName": "b" }), &published, &json!([]), &[]), filtered);
    let none = json!({ "poolCount": 0, "conditions": condition("Calculated status for 0 pools") });
    assert_eq!(status(&json!({}), &[], &json!([]), &[]), none);
}

#[test]
fn s82_s83_devices_are_counted() {
    let taint = |effect: &str| json!([{ "key": "k", "effect": effect, "timeAdded": NOW }]);
    let tainted = |name: &str, effect: &str| json!({ "name": name, "taints": taint(effect) });
    let rule = |selector: Value, effect: &str| json!({ "metadata": { "name": "r" }, "spec": { "deviceSelector": selector, "taint": { "key": "k", "effect": effect } } });
    let of = |generation: i64, devices: Value| slice(&format!("s{generation}"), "a", generation, 1, &devices);
    let two = || vec![of(1, devices(&["d0", "d1"]))];
    let admin = || {
        let mut admin = result("a", "d0");
        admin["adminAccess"] = json!(true);
        admin
    };
    // Total, allocated, available, unavailable.
    for (name, published, used, rules, expected) in [
        ("free", two(), json!([]), vec![], [2, 0, 2, 0]),
        ("allocated", two(), json!([result("a", "d0")]), vec![], [2, 1, 1, 0]),
        ("shared", two(), json!([result("a", "d0"), result("a", "d0")]), vec![], [2, 1, 1, 0]),
        ("admin access", two(), json!([admin()]), vec![], [2, 0, 2, 0]),
        ("of another pool", two(), json!([result("b", "d0")]), vec![], [2, 0, 2, 0]),
        ("t49: of an old generation", two(), json!([result("a", "gone")]), vec![], [2, 1, 1, 0]),
        (
            "tainted",
            vec![of(1, json!([tainted("d0", "NoSchedule"), tainted("d1", "NoExecute"), tainted("d2", "None")]))],
            json!([]),
            vec![],
            [3, 0, 1, 2],
        ),
        (
            "s83: tainted and allocated",
            vec![of(1, json!([tainted("d0", "NoExecute")]))],
            json!([result("a", "d0")]),
            vec![],
            [1, 1, 0, 1],
        ),
        ("by a rule", two(), json!([]), vec![rule(json!({ "device": "d1" }), "NoSchedule")], [2, 0, 1, 1]),
        ("by a rule without effect", two(), json!([]), vec![rule(json!({}), "None")], [2, 0, 2, 0]),
        ("by a rule without selector", two(), json!([]), vec![rule(Value::Null, "NoSchedule")], [2, 0, 2, 0]),
        (
            "newest generation",
            vec![of(1, devices(&["d0", "d1", "d2"])), of(2, devices(&["d0"]))],
            json!([]),
            vec![],
            [1, 0, 1, 0],
        ),
    ] {
        let status = status(&json!({}), &published, &used, &rules);
        let pool = &status["pools"][0];
        let found = ["totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices"]
            .map(|field| pool[field].as_u64().unwrap());
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn s82_a_pool_of_one_node_names_it() {
    let on = |name: &str, node: Option<&str>| {
        let mut slice = slice(name, "a", 1, 1, &devices(&["d0"]));
        if let Some(node) = node {
            slice["spec"]["nodeName"] = json!(node);
        }
        slice
    };
    for (name, published, node) in [
        ("one", vec![on("s", Some("n")), on("t", Some("n"))], json!("n")),
        ("two", vec![on("s", Some("n")), on("t", Some("m"))], Value::Null),
        ("mixed", vec![on("s", Some("n")), on("t", None)], Value::Null),
        ("none", vec![on("s", None)], Value::Null),
    ] {
        assert_eq!(status(&json!({}), &published, &json!([]), &[])["pools"][0]["nodeName"], node, "{name}");
    }
}

#[test]
fn s89_an_incomplete_pool_within_the_limit_waits() {
    let complete = || slice("s", "a", 1, 1, &devices(&["d0"]));
    let incomplete = |pool: &str| slice("t", pool, 1, 2, &devices(&["d0"]));
    let compute = |spec: Value, published: &[Value]| computed(&spec, published, &json!([]), &[]);
    assert_eq!(compute(json!({}), &[complete(), incomplete("b")]), Computed::Incomplete);
    assert_ne!(compute(json!({ "limit": 1 }), &[complete(), incomplete("b")]), Computed::Incomplete);
    assert_ne!(compute(json!({ "poolName": "a" }), &[complete(), incomplete("b")]), Computed::Incomplete);
    let old = slice("u", "a", 0, 5, &devices(&["d0"]));
    assert_ne!(compute(json!({}), &[complete(), old]), Computed::Incomplete, "old generations do not count");
}
