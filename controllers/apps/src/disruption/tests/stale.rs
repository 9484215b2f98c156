//! When a condition `DisruptionTarget` is stale, and the patch that ends it.

use std::time::Duration;

use serde_json::{Value, json};

use super::disruptions;
use crate::disruption::stale::{reset, stale_after};
use crate::tests::cluster::now;
use crate::tests::fixtures::{PodBuilder, ago, pod};

fn with(status: &str, reason: &str, since: &Value) -> PodBuilder {
    let condition =
        json!({ "type": "DisruptionTarget", "status": status, "reason": reason, "lastTransitionTime": since });
    pod("a").with("/status", "conditions", json!([condition]))
}

fn evicted(seconds_ago: i64) -> PodBuilder {
    with("True", "EvictionByEvictionAPI", &json!(ago(seconds_ago)))
}

#[test]
fn a_condition_is_stale_after_two_minutes() {
    for (name, pod, expected) in [
        ("no condition", pod("a"), None),
        ("new", evicted(0), Some(120)),
        ("older", evicted(50), Some(70)),
        ("stale", evicted(120), Some(0)),
        ("long stale", evicted(3600), Some(0)),
        ("of a clock that is ahead", evicted(-30), Some(150)),
        ("without a time", with("True", "EvictionByEvictionAPI", &Value::Null), Some(0)),
        ("false", with("False", "EvictionByEvictionAPI", &json!(ago(300))), None),
        ("of the kubelet", with("True", "TerminationByKubelet", &json!(ago(300))), None),
        ("of a pod that is being deleted", evicted(300).terminating(), None),
        ("of a pod that has failed", evicted(300).phase("Failed"), None),
        ("of a pod that has succeeded", evicted(300).phase("Succeeded"), None),
    ] {
        let pod = pod.build();
        let expected = expected.map(Duration::from_secs);
        assert_eq!(stale_after(&pod, disruptions().of(&pod), now()), expected, "{name}");
    }
}

#[test]
fn the_patch_is_of_the_version_that_was_read_and_leaves_nothing_of_the_old_condition() {
    let pod = evicted(300).generation(3).build();
    let expected = json!({
        "metadata": { "uid": "uid-of-a", "resourceVersion": "20" },
        "status": { "conditions": [{
            "type": "DisruptionTarget", "status": "False", "reason": null, "message": null,
            "lastProbeTime": null, "lastTransitionTime": "2026-01-02T12:00:00Z", "observedGeneration": 3,
        }] },
    });
    assert_eq!(reset(&pod, now()), expected);
    assert_eq!(reset(&evicted(300).build(), now())["status"]["conditions"][0].get("observedGeneration"), None);
}
