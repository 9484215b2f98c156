//! The condition of an evicted Pod.

use jiff::Timestamp;
use kcm_framework::api::views::PodDisruption;
use serde_json::{Value, json};

use super::{needs, pod_view};
use crate::taint_eviction::apply::disrupted_status;

#[test]
fn s48_the_condition_is_patched_unless_it_is_there() {
    let now: Timestamp = "2026-01-02T12:00:00.5Z".parse().unwrap();
    let check = |conditions: Value| {
        let pod = pod_view(&json!({
            "metadata": { "namespace": "shop", "name": "a", "uid": "u", "generation": 3 },
            "status": { "conditions": conditions },
        }));
        let needs = needs();
        disrupted_status(&pod, needs.reader::<PodDisruption>().unwrap().of(&pod), now)
    };
    let condition = |reason: &str, since: &str| {
        json!({
            "type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": since,
        })
    };
    let patch = |since: &str| {
        let mut condition = condition("DeletionByTaintManager", since);
        condition["message"] = json!("Taint manager: deleting due to NoExecute taint");
        condition["observedGeneration"] = json!(3);
        json!({ "metadata": { "uid": "u" }, "status": { "conditions": [condition] } })
    };
    let early = "2026-01-01T00:00:00Z";
    for (name, conditions, expected) in [
        ("none", json!([]), Some(patch("2026-01-02T12:00:00Z"))),
        ("another reason keeps its time", json!([condition("PreemptionByScheduler", early)]), Some(patch(early))),
        ("its own", json!([condition("DeletionByTaintManager", early)]), None),
    ] {
        assert_eq!(check(conditions), expected, "{name}");
    }
}
