//! The resources whose objects are deleted, and which of these need a deletion.

use std::collections::BTreeMap;

use kcm_framework::api::Resource;

use super::{CONFIG_MAPS, DEPLOYMENTS, listing, served};
use crate::namespace::observe::{Listing, PODS, deletable};

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
fn objects_are_deleted_unless_all_are_terminating_without_a_finalizer_of_the_collector() {
    for (name, listing, expected) in [
        ("none", listing(&[]), false),
        ("one", listing(&[("a", &[])]), true),
        ("a terminating one", listing(&[("a-", &["example.com/hold"])]), false),
        ("one of two is terminating", listing(&[("a-", &[]), ("b", &[])]), true),
        ("it waits for dependents", listing(&[("a-", &["foregroundDeletion"])]), true),
        ("it orphans dependents", listing(&[("a-", &["orphan"])]), true),
        ("there are more", Listing { is_partial: true, ..listing(&[("a-", &[])]) }, true),
    ] {
        assert_eq!(listing.is_to_be_deleted(), expected, "{name}");
    }
}
