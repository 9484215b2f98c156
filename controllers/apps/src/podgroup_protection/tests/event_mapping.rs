//! Event mapping.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Pod;
use kcm_framework::informers::Change;

use super::{group, membership, pod};
use crate::podgroup_protection::event_mapping::{keys_for_group, keys_for_pod};
use crate::podgroup_protection::plan::FINALIZER;
use crate::podgroup_protection::view::PodGroup;

#[test]
fn s93_a_terminating_group_with_the_finalizer_is_enqueued() {
    let key = ObjectKey::namespaced("shop", "g");
    for (name, finalizers, is_terminating, is_enqueued) in [
        ("terminating", vec![FINALIZER, "other"], true, true),
        ("terminating without the finalizer", vec!["other"], true, false),
        ("not terminating", vec![FINALIZER], false, false),
    ] {
        let new = group(&finalizers, is_terminating);
        let expected = is_enqueued.then(|| key.clone());
        assert_eq!(keys_for_group(&Change::Added(new.clone())), expected, "{name}");
        assert_eq!(keys_for_group(&Change::Updated { old: group(&[], false), new }), expected, "{name}");
    }
    let last = group(&[FINALIZER], true);
    assert_eq!(keys_for_group(&Change::<PodGroup>::Undecodable { last: last.clone() }), None);
    assert_eq!(keys_for_group(&Change::Deleted { last, final_state_known: true }), Some(key));
}

#[test]
fn s93_a_pod_enqueues_its_group_when_it_ends_is_deleted_or_recreated() {
    let added = Change::Added;
    let updated = |old, new| Change::Updated { old, new };
    let deleted = |last, final_state_known| Change::Deleted { last, final_state_known };
    for (name, change, expected) in [
        ("added, pending", added(pod("u", "g", "Pending")), vec![]),
        ("added, succeeded", added(pod("u", "g", "Succeeded")), vec!["g"]),
        ("added, failed", added(pod("u", "g", "Failed")), vec!["g"]),
        ("added, ended, without a group", added(pod("u", "", "Failed")), vec![]),
        ("updated, running", updated(pod("u", "g", "Pending"), pod("u", "g", "Running")), vec![]),
        ("updated, ended", updated(pod("u", "g", "Running"), pod("u", "g", "Succeeded")), vec!["g"]),
        ("recreated", updated(pod("u", "g", "Running"), pod("v", "", "Running")), vec!["g"]),
        ("recreated in the group", updated(pod("u", "g", "Running"), pod("v", "g", "Running")), vec!["g"]),
        ("recreated in another one", updated(pod("u", "g", "Running"), pod("v", "h", "Failed")), vec!["h", "g"]),
        ("leaves its group", updated(pod("u", "g", "Running"), pod("u", "h", "Running")), vec!["g"]),
        ("deleted", deleted(pod("u", "g", "Running"), true), vec!["g"]),
        ("its deletion was missed", deleted(pod("u", "g", "Running"), false), vec!["g"]),
        ("deleted without a group", deleted(pod("u", "", "Running"), true), vec![]),
        ("undecodable", Change::<Pod>::Undecodable { last: pod("u", "g", "Failed") }, vec![]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|group| ObjectKey::namespaced("shop", group)).collect();
        assert_eq!(keys_for_pod(&change, membership()), expected, "{name}");
    }
}
