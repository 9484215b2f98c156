//! Conditions of rules, and of evicted Pods.

use jiff::Timestamp;
use kcm_framework::api::views::PodDisruption;
use serde_json::{Value, json};

use super::{START, needs, pod_view, rule, rule_view, taint};
use crate::device_taint_eviction::apply::disrupted_status;
use crate::device_taint_eviction::status::{Numbers, condition};

fn numbers(pods: u64, namespaces: u64, evicted: u64) -> Numbers {
    Numbers { pods, namespaces, evicted, ..Numbers::default() }
}

fn now() -> Timestamp {
    START.parse().unwrap()
}

#[test]
fn s64_the_condition_has_upstreams_texts() {
    const UNCHANGED: &str = "if the effect was NoExecute. This information will not be updated again. Recreate the \
                             DeviceTaintRule to trigger an update.";
    let devices =
        |published, allocated, pods, namespaces| Numbers { published, allocated, ..numbers(pods, namespaces, 0) };
    for (effect, numbers, status, reason, message) in [
        (
            "NoExecute",
            numbers(1, 1, 0),
            "True",
            "PodsPendingEviction",
            "1 pod needs to be evicted in 1 namespace.".to_owned(),
        ),
        (
            "NoExecute",
            numbers(3, 2, 1),
            "True",
            "PodsPendingEviction",
            "3 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller."
                .to_owned(),
        ),
        (
            "NoExecute",
            numbers(0, 0, 2),
            "False",
            "Completed",
            "2 pods evicted since starting the controller.".to_owned(),
        ),
        ("NoExecute", numbers(0, 0, 0), "False", "NotStarted", String::new()),
        (
            "None",
            devices(1, 1, 1, 1),
            "False",
            "NoEffect",
            format!(
                "1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace {UNCHANGED}"
            ),
        ),
        (
            "None",
            devices(0, 2, 0, 0),
            "False",
            "NoEffect",
            format!(
                "0 published devices selected. 2 allocated devices selected. 0 pods would be evicted in 0 different \
                 namespaces {UNCHANGED}"
            ),
        ),
        (
            "NoSchedule",
            numbers(0, 0, 0),
            "False",
            "OtherEffect",
            "Eviction only happens for the NoExecute effect.".to_owned(),
        ),
    ] {
        let rule = rule_view(&rule("r", &json!({}), &taint("k", effect)));
        let found = condition(&rule, numbers, now()).unwrap();
        let expected = json!({
            "type": "EvictionInProgress", "status": status, "observedGeneration": 1, "lastTransitionTime": START, "reason": reason,
        });
        let mut expected = expected;
        if !message.is_empty() {
            expected["message"] = json!(message);
        }
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
    }
}

#[test]
fn the_condition_is_written_if_it_differs() {
    let with = |effect: &str, generation: i64, reason: &str, message: &str, status: &str| {
        let mut rule = rule("r", &json!({}), &taint("k", effect));
        let condition = json!({
            "type": "EvictionInProgress", "status": status, "observedGeneration": generation, "reason": reason,
            "message": message, "lastTransitionTime": "2026-01-02T11:00:00Z",
        });
        rule["status"] = json!({ "conditions": [{ "type": "Other", "status": "True" }, condition] });
        rule_view(&rule)
    };
    let pending = "1 pod needs to be evicted in 1 namespace.";
    let evicted = "3 pods evicted since starting the controller.";
    for (name, rule, numbers, is_written) in [
        ("the same", with("NoExecute", 1, "PodsPendingEviction", pending, "True"), numbers(1, 1, 0), false),
        ("another message", with("NoExecute", 1, "PodsPendingEviction", pending, "True"), numbers(2, 1, 0), true),
        ("another generation", with("NoExecute", 0, "NotStarted", "", "False"), numbers(0, 0, 0), true),
        (
            "o5: completed by a predecessor",
            with("NoExecute", 1, "Completed", evicted, "False"),
            numbers(0, 0, 0),
            false,
        ),
        (
            "o5: completed, then evicted here",
            with("NoExecute", 1, "Completed", evicted, "False"),
            numbers(0, 0, 1),
            true,
        ),
        (
            "o5: completed, of another generation",
            with("NoExecute", 0, "Completed", evicted, "False"),
            numbers(0, 0, 0),
            true,
        ),
        ("o5: no effect stays", with("None", 1, "NoEffect", "old numbers", "False"), numbers(5, 1, 0), false),
        (
            "no effect of another generation",
            with("None", 0, "NoEffect", "old numbers", "False"),
            numbers(5, 1, 0),
            true,
        ),
    ] {
        let written = condition(&rule, numbers, now());
        assert_eq!(written.is_some(), is_written, "{name}");
        assert!(written.is_none_or(|written| written.last_transition_time == Some(now())), "{name}");
    }
}

#[test]
fn s62_the_condition_of_a_pod_is_patched_by_uid() {
    let pod = |conditions: Value| {
        let metadata = json!({ "namespace": "shop", "name": "web", "uid": "u", "generation": 3 });
        pod_view(&json!({ "metadata": metadata, "status": { "conditions": conditions } }))
    };
    let patch = |conditions: Value| {
        let (pod, needs) = (pod(conditions), needs());
        disrupted_status(&pod, needs.reader::<PodDisruption>().unwrap().of(&pod), now())
    };
    let condition = |since: &str| {
        json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager",
            "message": "Device Taint manager: deleting due to NoExecute taint", "lastTransitionTime": since,
        })
    };
    let expected = |since: &str| json!({ "metadata": { "uid": "u" }, "status": { "conditions": [condition(since)] } });
    assert_eq!(patch(json!([])), Some(expected(START)));
    assert_eq!(patch(json!([condition(START)])), None);
    let earlier = "2026-01-02T11:00:00Z";
    let other =
        json!([{ "type": "DisruptionTarget", "status": "True", "reason": "Other", "lastTransitionTime": earlier }]);
    assert_eq!(patch(other), Some(expected(earlier)));
}
