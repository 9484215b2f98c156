//! When the finalizer is removed.

use std::time::Duration;

use serde_json::{Value, json};

use super::{group, membership, pod};
use crate::podgroup_protection::plan::{FINALIZER, Plan, group_of_active, plan, released};

#[test]
fn s94_a_pod_keeps_its_group_until_it_has_ended() {
    for (phase, expected) in
        [("Pending", true), ("Running", true), ("Unknown", true), ("", true), ("Succeeded", false), ("Failed", false)]
    {
        assert_eq!(group_of_active(&pod("u", "g", phase), membership()).is_some(), expected, "{phase:?}");
    }
    assert_eq!(group_of_active(&pod("u", "", "Running"), membership()), None);
}

#[test]
fn s94_the_finalizer_of_a_terminating_group_without_active_pods_is_removed_at_the_second_look() {
    let millis = Duration::from_millis;
    let terminating = || group(&[FINALIZER], true);
    for (name, group, active, idle_for, expected, words) in [
        (
            "not terminating",
            group(&[FINALIZER], false),
            0,
            None,
            Plan::Leave,
            "leaves the group, which is not being deleted or lacks the finalizer",
        ),
        (
            "without the finalizer",
            group(&["other"], true),
            0,
            None,
            Plan::Leave,
            "leaves the group, which is not being deleted or lacks the finalizer",
        ),
        (
            "in use",
            terminating(),
            2,
            None,
            Plan::InUse { pods: 2 },
            "keeps the finalizer of the terminating group: 2 of its pods are active",
        ),
        (
            "in use at the second look",
            terminating(),
            1,
            Some(millis(5000)),
            Plan::InUse { pods: 1 },
            "keeps the finalizer of the terminating group: 1 of its pods are active",
        ),
        (
            "first look",
            terminating(),
            0,
            None,
            Plan::LookAgain { after: millis(1000) },
            "looks again before it removes the finalizer: no pod is active",
        ),
        (
            "a pod ends meanwhile",
            terminating(),
            0,
            Some(millis(300)),
            Plan::LookAgain { after: millis(700) },
            "looks again before it removes the finalizer: no pod is active",
        ),
        (
            "second look",
            terminating(),
            0,
            Some(millis(1000)),
            Plan::Remove,
            "removes the finalizer of the terminating group, of which no pod is active",
        ),
    ] {
        let planned = plan(&group.metadata, || active, idle_for);
        assert_eq!((planned, planned.explain().as_str()), (expected, words), "{name}");
    }
}

#[test]
fn only_the_finalizer_goes() {
    let group = group(&["a", FINALIZER, "b"], true);
    let changed = released(&group.document, &group.metadata).unwrap();
    let mut expected: Value = serde_json::from_str(group.document.as_str()).unwrap();
    expected["metadata"]["finalizers"] = json!(["a", "b"]);
    assert_eq!(serde_json::from_str::<Value>(changed.as_str()).unwrap(), expected);
}
