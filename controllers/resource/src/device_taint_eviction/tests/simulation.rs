//! Evictions from tainted devices in the simulation.

use kcm_simulation::rules::{
    Held, Story, check as check_rule, has_condition, holds, items, name, text, uid, writes_of,
};
use kcm_simulation::{History, Scenario, check};
use kcm_testing::sandbox::{PODS, Verb};
use serde_json::{Value, json};

use super::apply::{SLICES, create_user, global, publish, set_taints, taint, tolerates};
use crate::device_taint_eviction::DESCRIPTOR;
use crate::tests::scenarios::{annotate, scenario};
use crate::tests::{CLAIMS, key};

const LOOP: &str = "device-taint-eviction-controller";

/// Returns `true` if the device `d0` has a taint.
fn is_tainted(slice: &Value) -> bool {
    items(slice, "/spec/devices").iter().any(|device| device["name"] == "d0" && !items(device, "/taints").is_empty())
}

/// Returns `true` if a claim with the device `d0` is reserved for a pod.
fn holds_device(claim: &Value, pod: &Value) -> bool {
    let of_pod = |one: &Value| text(one, "/uid") == uid(pod);
    text(claim, "/status/allocation/devices/results/0/device") == "d0"
        && items(claim, "/status/reservedFor").iter().any(of_pod)
}

/// D25: a pod is evicted only if a claim of it has a device that was tainted when the reconcile began, or later, and after
/// its condition.
fn evicts_only_from_tainted_devices(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let is_deletion = change.verb == Verb::Delete && change.resource == PODS;
        let Some(pod) = change.before.as_deref().filter(|_| is_deletion) else { return Ok(()) };
        let seen = history.seen_by(at, &SLICES, &global("s")).is_some_and(|slice| is_tainted(&slice));
        let since = change.seen.as_ref().and_then(|seen| seen.version(&SLICES)).unwrap_or(change.version);
        let later = history.changes[..at].iter().filter(|one| one.version > since && one.resource == SLICES);
        let was_tainted = seen || later.filter_map(|one| one.after.as_deref()).any(is_tainted);
        let mut claims = kcm_simulation::rules::of(objects, &CLAIMS);
        let is_right =
            was_tainted && claims.any(|claim| holds_device(claim, pod)) && has_condition(pod, "DisruptionTarget");
        holds(is_right, "D25", "a pod is evicted that has no tainted device", at, change)
    })
}

/// Pods on a device that is tainted, one of which tolerates it for half a minute, and a pod on another device.
fn tainted() -> Scenario {
    scenario("device_taint_eviction tainted", DESCRIPTOR, &[evicts_only_from_tainted_devices])
        .prepare(|sandbox| {
            publish(sandbox, &json!([]));
            create_user(sandbox, "a", "d0", &json!([]));
            create_user(sandbox, "b", "d1", &json!([]));
            create_user(sandbox, "later", "d0", &tolerates(30));
        })
        .then(|_| true, |sandbox| set_taints(sandbox, &json!([taint("NoExecute")])))
        .act("annotate-pod", annotate(&PODS, key("a")))
        .act("annotate-claim", annotate(&CLAIMS, key("later")))
        .act("untaint", |sandbox| set_taints(sandbox, &json!([])))
        .act("taint", |sandbox| set_taints(sandbox, &json!([taint("NoExecute")])))
        .act("delete-pod", |sandbox| drop(sandbox.delete_now(&PODS, &key("a"))))
        .goal(|sandbox| {
            let slice = sandbox.get(&SLICES, &global("s")).unwrap_or_default();
            let names: Vec<String> = sandbox.list(&PODS, None).iter().map(|pod| name(pod).to_owned()).collect();
            names.contains(&"b".to_owned()) && (!is_tainted(&slice) || names.len() == 1)
        })
}

fn story(taints: &Value) -> Story {
    let devices = json!([{ "name": "d0", "taints": taints }]);
    let slice = json!({ "metadata": { "name": "s", "uid": "u-s" }, "spec": { "devices": devices } });
    let claim = json!({
        "metadata": { "namespace": "shop", "name": "a", "uid": "u-c" },
        "status": {
            "allocation": { "devices": { "results": [{ "device": "d0" }] } }, "reservedFor": [{ "uid": "u-a" }],
        },
    });
    let pod = json!({
        "metadata": { "namespace": "shop", "name": "a", "uid": "u-a" },
        "status": { "conditions": [{ "type": "DisruptionTarget", "status": "True" }] },
    });
    Story::of([(SLICES, slice), (CLAIMS, claim), (PODS, pod)]).delete(LOOP, &PODS, "a")
}

#[test]
fn no_perturbation_of_tainted_devices_breaks_a_rule() {
    check(&tainted(), 15);
}

#[test]
fn an_eviction_without_a_taint_is_noticed() {
    check_rule("D25", evicts_only_from_tainted_devices, story(&json!([taint("NoExecute")])), story(&json!([])));
}
