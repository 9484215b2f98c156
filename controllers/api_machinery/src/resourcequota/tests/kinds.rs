//! The kinds that quotas count.

use kcm_framework::api::Resource;
use kcm_framework::discovery::ServedResource;

use crate::resourcequota::kinds::quotable;

fn served(resource: Resource, verbs: &[&str]) -> ServedResource {
    let verbs = verbs.iter().map(|verb| (*verb).into()).collect();
    ServedResource { resource, verbs, subresources: [].into(), is_preferred: true }
}

#[test]
fn namespaced_kinds_that_can_be_created_listed_watched_and_deleted_are_counted() {
    const ALL: [&str; 5] = ["create", "delete", "get", "list", "watch"];
    let found = [
        served(Resource::namespaced("", "v1", "pods", "Pod"), &ALL),
        served(Resource::namespaced("apps", "v1", "deployments", "Deployment"), &ALL),
        served(Resource::cluster_scoped("", "v1", "nodes", "Node"), &ALL),
        served(Resource::namespaced("", "v1", "events", "Event"), &ALL),
        served(Resource::namespaced("events.k8s.io", "v1", "events", "Event"), &ALL),
        served(Resource::namespaced("", "v1", "bindings", "Binding"), &["create"]),
        served(Resource::namespaced("metrics.k8s.io", "v1beta1", "pods", "PodMetrics"), &["get", "list"]),
        served(Resource::namespaced("resource.k8s.io", "v1beta1", "resourceclaims", "ResourceClaim"), &ALL),
    ];
    let counted: Vec<(String, String)> = quotable(found.iter())
        .into_iter()
        .map(|(evaluator, resource)| (format!("{evaluator:?}"), resource.to_string()))
        .collect();
    let names: Vec<&str> = counted.iter().map(|(evaluator, _)| evaluator.as_str()).collect();
    // A version without a view of its own is counted by its metadata.
    let expected = [
        "Pods",
        r#"Objects(ObjectCount("deployments.apps"))"#,
        r#"Objects(ObjectCount("resourceclaims.resource.k8s.io"))"#,
    ];
    assert_eq!(names, expected);
}
