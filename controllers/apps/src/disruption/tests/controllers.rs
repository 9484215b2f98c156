//! Which controllers of pods are found in caches.

use crate::disruption::controllers::CachedKind;
use crate::tests::fixtures::{PodBuilder, pod};

fn controlled_by(api_version: &str, kind: &str) -> PodBuilder {
    let owner = serde_json::json!([{
        "apiVersion": api_version, "kind": kind, "name": "web", "uid": "u", "controller": true,
    }]);
    pod("a").with("/metadata", "ownerReferences", owner)
}

#[test]
fn controllers_are_cached_by_group_and_kind_in_any_version() {
    use CachedKind::{ReplicaSet, ReplicationController, StatefulSet};
    for (api_version, kind, expected) in [
        ("v1", "ReplicationController", Some(ReplicationController)),
        ("/v1", "ReplicationController", Some(ReplicationController)),
        ("v2", "ReplicationController", Some(ReplicationController)),
        ("apps/v1", "ReplicationController", None),
        ("apps/v1", "ReplicaSet", Some(ReplicaSet)),
        ("apps/v1beta2", "ReplicaSet", Some(ReplicaSet)),
        ("extensions/v1beta1", "ReplicaSet", Some(ReplicaSet)),
        ("example.com/v1", "ReplicaSet", None),
        ("v1", "ReplicaSet", None),
        ("apps/v1", "StatefulSet", Some(StatefulSet)),
        ("extensions/v1beta1", "StatefulSet", None),
        ("apps.kruise.io/v1", "StatefulSet", None),
        ("apps/v1", "Deployment", None),
        ("apps/v1", "DaemonSet", None),
        ("apps/v1", "replicaset", None),
    ] {
        let pod = controlled_by(api_version, kind).build();
        let reference = pod.metadata.controller().unwrap();
        assert_eq!(CachedKind::of(reference), expected, "{api_version} {kind}");
    }
}
