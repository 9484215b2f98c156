//! The resources that have informers.

use std::collections::BTreeMap;

use kcm_framework::api::Resource;
use kcm_framework::discovery::ServedResource;

use super::fixtures::{MAPS, NODES};
use crate::garbage_collector::monitors::{monitored, never_discovered};
use crate::garbage_collector::settings::GroupResource;

const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");
const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");
const WIDGETS: Resource = Resource::namespaced("example.com", "v1", "widgets", "Widget");

fn served(resource: Resource, verbs: &[&str]) -> ServedResource {
    let verbs = verbs.iter().map(|verb| (*verb).into()).collect();
    ServedResource { resource, verbs, subresources: [].into(), is_preferred: true }
}

/// The rows of upstream's `TestGetDeletableResources`. A version of a group that cannot be parsed is no row: discovery has
/// group and version apart.
#[test]
fn what_discovery_finds_is_monitored_whatever_else_it_does_not_find() {
    const VERBS: [&str; 3] = ["delete", "list", "watch"];
    let usable = [served(PODS, &VERBS), served(SERVICES, &[])];
    let [pods, services] = usable.clone();
    let missing_verbs = [pods, services, served(WIDGETS, &["delete"])];
    for (name, found, broken, expected) in [
        ("no error", &missing_verbs[..], None, vec![PODS]),
        ("nonspecific failure, includes usable results", &usable, None, vec![PODS]),
        ("partial discovery failure, includes usable results", &usable, Some("foo/v1"), vec![PODS]),
        ("discovery failure, no results", &[], Some("v1"), vec![]),
    ] {
        let monitored: Vec<Resource> = monitored(found.iter(), &[]).into_iter().collect();
        assert_eq!(monitored, expected, "{name}");
        let errors: BTreeMap<String, String> =
            broken.iter().map(|broken| ((*broken).to_owned(), "discovery failure".to_owned())).collect();
        let unknown: Vec<&str> = never_discovered(found.iter().map(|served| &served.resource), &errors).collect();
        assert_eq!(unknown, Vec::from_iter(broken), "{name}: decisions wait for it");
    }
}

#[test]
fn every_resource_that_can_be_deleted_listed_and_watched_has_one_unless_it_is_ignored() {
    const EVENTS: Resource = Resource::namespaced("events.k8s.io", "v1", "events", "Event");
    const OTHERS: Resource = Resource::namespaced("example.com", "v1", "events", "Event");
    let all = ["delete", "list", "watch", "get"];
    let found = [
        served(MAPS, &all),
        served(NODES, &["delete", "list"]),
        served(EVENTS, &all),
        served(OTHERS, &all),
        served(Resource::namespaced("", "v1", "bindings", "Binding"), &["create"]),
    ];
    let ignored = [GroupResource { group: "events.k8s.io".to_owned(), resource: "events".to_owned() }];
    let monitored: Vec<Resource> = monitored(found.iter(), &ignored).into_iter().collect();
    assert_eq!(monitored, [MAPS, OTHERS]);
}
