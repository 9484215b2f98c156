//! The resources whose objects are deleted, and which of these need a deletion.

use std::collections::BTreeMap;

use kcm_framework::api::Resource;

use serde_json::json;

use super::{CONFIG_MAPS, DEPLOYMENTS, listing, served};
use crate::namespace::observe::{Item, ItemMeta, Listing, PODS, deletable};

#[test]
fn every_deletable_namespaced_resource_that_is_discovered_is_emptied_and_pods_are_the_first() {
    const NODES: Resource = Resource::cluster_scoped("", "v1", "nodes", "Node");
    const REVIEWS: Resource = Resource::namespaced("authorization.k8s.io", "v1", "reviews", "Review");
    const METRICS: Resource = Resource::namespaced("metrics.k8s.io", "v1beta1", "pods", "PodMetrics");
    let found = [
        served(CONFIG_MAPS, &["delete", "list"]),
        served(NODES, &["delete", "list"]),
        served(REVIEWS, &["create"]),
        served(METRICS, &["delete"]),
        served(DEPLOYMENTS, &["delete"]),
        served(PODS, &["delete"]),
    ];
    let broken = BTreeMap::from([("metrics.k8s.io/v1beta1".to_owned(), "503".to_owned())]);
    let names: Vec<String> =
        deletable(found.iter(), &broken).iter().map(|served| served.resource.to_string()).collect();
    assert_eq!(names, ["pods", "configmaps", "deployments.apps"]);
}

#[test]
fn a_resource_whose_preferred_version_fails_is_deleted_in_another_version_that_is_served() {
    const NEW: Resource = Resource::namespaced("example.com", "v2", "widgets", "Widget");
    const OLD: Resource = Resource::namespaced("example.com", "v1", "widgets", "Widget");
    const ALONE: Resource = Resource::namespaced("example.com", "v2", "lamps", "Lamp");
    let found = [NEW, ALONE, OLD].map(|resource| served(resource, &["delete", "list"]));
    let deleted = |broken: &[&str]| -> Vec<String> {
        let broken = broken.iter().map(|version| ((*version).to_owned(), "503".to_owned())).collect();
        let deletable = deletable(found.iter(), &broken);
        deletable.iter().map(|it| format!("{} {}", it.resource.version, it.resource.plural)).collect()
    };
    assert_eq!(deleted(&[]), ["v2 lamps", "v2 widgets"]);
    assert_eq!(deleted(&["example.com/v2"]), ["v1 widgets"]);
    assert_eq!(deleted(&["example.com/v1", "example.com/v2"]), [""; 0]);
}

#[test]
fn an_object_with_invalid_metadata_is_read_by_its_name_and_uid() {
    for (name, object, expected) in [
        ("valid", json!({ "metadata": { "name": "a", "uid": "u" } }), ("a", "u")),
        ("invalid finalizers", json!({ "metadata": { "name": "a", "uid": "u", "finalizers": 7 } }), ("a", "u")),
        ("an invalid name", json!({ "metadata": { "name": 7, "uid": "u" } }), ("", "")),
        ("no object", json!("x"), ("", "")),
    ] {
        let raw = serde_json::value::to_raw_value(&object).unwrap();
        let ItemMeta { name: found, uid, deletion_timestamp, .. } = Item::read(&raw).metadata;
        assert_eq!((&*found, &*uid.to_string()), expected, "{name}");
        assert_eq!(deletion_timestamp, None, "{name}");
    }
}

#[test]
fn a_terminating_object_is_deleted_again_if_nothing_holds_it_up() {
    for (name, metadata, expected) in [
        ("no grace period and no finalizer", json!({}), true),
        ("a grace period of zero", json!({ "deletionGracePeriodSeconds": 0 }), true),
        ("a grace period", json!({ "deletionGracePeriodSeconds": 30 }), false),
        ("a finalizer", json!({ "finalizers": ["example.com/hold"] }), false),
        (
            "a finalizer and a grace period of zero",
            json!({ "deletionGracePeriodSeconds": 0, "finalizers": ["a/b"] }),
            false,
        ),
        ("a finalizer of the collector", json!({ "deletionGracePeriodSeconds": 30, "finalizers": ["orphan"] }), true),
    ] {
        let mut object = json!({ "metadata": metadata });
        object["metadata"]["deletionTimestamp"] = json!("2026-01-02T12:00:00Z");
        let raw = serde_json::value::to_raw_value(&object).unwrap();
        let listing = Listing { items: vec![Item::read(&raw)], is_partial: false };
        assert_eq!(listing.is_to_be_deleted(), expected, "{name}");
    }
}

#[test]
fn objects_are_deleted_unless_all_are_terminating_without_a_finalizer_of_the_collector() {
    for (name, listing, expected) in [
        ("none", listing(&[]), false),
        ("one", listing(&[("a", &[])]), true),
        ("a terminating one", listing(&[("a-", &["example.com/hold"])]), false),
        ("one that was deleted in part", listing(&[("a-", &[])]), true),
        ("one of two is terminating", listing(&[("a-", &[]), ("b", &[])]), true),
        ("it waits for dependents", listing(&[("a-", &["foregroundDeletion"])]), true),
        ("it orphans dependents", listing(&[("a-", &["orphan"])]), true),
        ("there are more", Listing { is_partial: true, ..listing(&[("a-", &[])]) }, true),
    ] {
        assert_eq!(listing.is_to_be_deleted(), expected, "{name}");
    }
}
