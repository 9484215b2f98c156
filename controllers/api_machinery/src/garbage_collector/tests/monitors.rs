//! The resources that have informers.

use kcm_framework::api::Resource;
use kcm_framework::discovery::ServedResource;

use super::fixtures::{MAPS, NODES};
use crate::garbage_collector::monitors::monitored;
use crate::garbage_collector::settings::GroupResource;

#[test]
fn every_resource_that_can_be_deleted_listed_and_watched_has_one_unless_it_is_ignored() {
    const EVENTS: Resource = Resource::namespaced("events.k8s.io", "v1", "events", "Event");
    const OTHERS: Resource = Resource::namespaced("example.com", "v1", "events", "Event");
    let served = |resource: Resource, verbs: &[&str]| ServedResource {
        resource,
        verbs: verbs.iter().map(|verb| (*verb).into()).collect(),
        subresources: [].into(),
        is_preferred: true,
    };
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
