//! Names and ordinals.

use serde_json::json;

use super::fixtures::{Is, pod, pod_with, set};
use crate::statefulset::identity::{Ordinals, has_identity, is_member, ordinal};

#[test]
fn the_ordinal_is_in_the_name() {
    // pod, member, ordinal
    for (name, member, expected) in [
        ("web-0", true, Some(0)),
        ("web-11", true, Some(11)),
        ("web-2147483647", true, Some(2_147_483_647)),
        ("web-2147483648", true, None),
        ("web-99999999999999999999", true, None),
        ("web-01", true, None),
        ("web-00", true, None),
        ("web-", false, None),
        ("web", false, None),
        ("web-a", false, None),
        ("web-1a", false, None),
        ("web--1", false, None),
        ("web-1-2", false, None),
        ("webs-1", false, None),
        ("a-web-1", false, None),
        ("web-\u{661}", false, None),
    ] {
        assert_eq!((is_member("web", name), ordinal("web", name)), (member, expected), "{name}");
    }
    assert_eq!(ordinal("web-1", "web-1-2"), Some(2));
}

#[test]
fn ordinals_go_from_the_start_as_many_as_replicas() {
    // start, replicas, ordinals
    for (start, replicas, expected) in [
        (0, 3, vec![0, 1, 2]),
        (5, 2, vec![5, 6]),
        (0, 0, vec![]),
        (3, -1, vec![]),
        (2_147_483_647, 2, vec![2_147_483_647, 2_147_483_648]),
    ] {
        let set = set(json!({ "spec": { "replicas": replicas, "ordinals": { "start": start } } }));
        let ordinals = Ordinals::of(&set);
        assert_eq!((ordinals.start..ordinals.end).collect::<Vec<i64>>(), expected, "{start} {replicas}");
        assert!(expected.iter().all(|ordinal| ordinals.contain(*ordinal)));
        assert!(!ordinals.contain(ordinals.end) && !ordinals.contain(ordinals.start - 1));
    }
}

#[test]
fn a_pod_has_its_identity_by_the_label_with_its_name_alone() {
    assert!(has_identity(&pod(0, Is::Ready)));
    for (name, label, expected) in [
        ("without the label of its ordinal", json!({ "apps.kubernetes.io/pod-index": null }), true),
        ("without the label of its name", json!({ "statefulset.kubernetes.io/pod-name": null }), false),
        ("with another name", json!({ "statefulset.kubernetes.io/pod-name": "web-1" }), false),
    ] {
        let pod = pod_with(0, Is::Ready, json!({ "metadata": { "labels": label } }));
        assert_eq!(has_identity(&pod), expected, "{name}");
    }
}
