//! The kinds of resources in discovery.

use crate::validatingadmissionpolicy_status::kinds::{Lookup, Resource};
use crate::validatingadmissionpolicy_status::resources::{Discovered, DiscoveredResource, kinds_for};

fn version(group: &str, version: &str, resources: &[(&str, &str, &str)]) -> Discovered {
    let resources = resources.iter().map(|(name, singular, kind)| DiscoveredResource {
        name: (*name).to_owned(),
        singular: (*singular).to_owned(),
        kind: (*kind).to_owned(),
    });
    Discovered { group: group.to_owned(), version: version.to_owned(), resources: resources.collect() }
}

fn discovered() -> Vec<Discovered> {
    vec![
        version("", "v1", &[("pods", "pod", "Pod"), ("pods/status", "", "Pod"), ("events", "", "Event")]),
        version("apps", "v1", &[("deployments", "deployment", "Deployment")]),
        version("apps", "v1beta1", &[("deployments", "deployment", "Deployment")]),
        version("events.k8s.io", "v1", &[("events", "event", "Event")]),
        version("example.com", "v1", &[("pods", "thing", "Thing"), ("lists", "l", "Own"), ("boxes", "thing", "Box")]),
    ]
}

fn kinds(group: &str, version: &str, resource: &str) -> Vec<String> {
    let wanted = Resource { group: group.to_owned(), version: version.to_owned(), resource: resource.to_owned() };
    match kinds_for(&discovered(), &wanted) {
        Lookup::Found(kinds) => kinds.iter().map(ToString::to_string).collect(),
        Lookup::Unknown => Vec::new(),
    }
}

#[test]
fn finds_kinds_as_the_rest_mapper_does() {
    for (group, version, resource, expected) in [
        ("apps", "v1", "deployments", vec!["apps/v1, Kind=Deployment"]),
        ("apps", "v1", "Deployments", vec!["apps/v1, Kind=Deployment"]),
        ("apps", "v1", "deployment", vec!["apps/v1, Kind=Deployment"]),
        ("apps", "v1", "deploy", vec![]),
        ("apps", "v2", "deployments", vec![]),
        ("app", "v1", "deployments", vec![]),
        ("apps", "v1", "deploymentlists", vec!["apps/v1, Kind=DeploymentList"]),
        ("apps", "v1", "deploymentlist", vec!["apps/v1, Kind=DeploymentList"]),
        ("apps", "v1", "lists", vec!["apps/v1, Kind=List"]),
        ("apps", "v1", "", vec![]),
        ("", "v1", "events", vec!["/v1, Kind=Event", "events.k8s.io/v1, Kind=Event"]),
        ("", "v1", "event", vec!["/v1, Kind=Event", "events.k8s.io/v1, Kind=Event"]),
        ("", "v1", "pods", vec!["/v1, Kind=Pod", "example.com/v1, Kind=Thing"]),
        ("apps", "", "deployments", vec!["apps/v1, Kind=Deployment", "apps/v1beta1, Kind=Deployment"]),
        ("apps", "__internal", "deployments", vec!["apps/v1, Kind=Deployment", "apps/v1beta1, Kind=Deployment"]),
        ("events", "", "events", vec!["events.k8s.io/v1, Kind=Event"]),
        ("", "", "pod", vec!["/v1, Kind=Pod"]),
        ("example.com", "v1", "thing", vec!["example.com/v1, Kind=Box"]),
        ("example.com", "v1", "lists", vec!["example.com/v1, Kind=List"]),
        ("example.com", "v1", "l", vec!["example.com/v1, Kind=Own"]),
    ] {
        assert_eq!(kinds(group, version, resource), expected, "{group} {version} {resource}");
    }
}
