//! Pods that are created from a template.

use serde::Serialize;
use serde_json::{Value, json};

use crate::shared::pod_control::pod_template::PodTemplate;
use crate::tests::fixtures::replica_set;

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn a_new_pod_is_the_template_with_an_owner_and_a_name() {
    let template = json!({
        "metadata": {
            "name": "ignored",
            "namespace": "ignored",
            "ownerReferences": [{ "kind": "Ignored" }],
            "creationTimestamp": null,
            "labels": { "app": "web", "pod-template-hash": "abc" },
            "annotations": { "note": "kept" },
            "finalizers": ["example.com/hold"],
            "newMetadataField": "ignored",
        },
        "spec": {
            "containers": [{ "name": "main", "image": "image", "brandNewField": { "deep": [1, 2.50, null] } }],
            "unknownField": "kept",
        },
    });
    let owner = replica_set("web")
        .with("/metadata", "annotations", json!({ "note": "of the replica set" }))
        .with("/spec", "template", template)
        .build();
    let created = json_of(&PodTemplate::of(&*owner, &owner.document).pod("web-x7k2p"));
    assert_eq!(
        serde_json::from_str::<Value>(&created).unwrap(),
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "web-x7k2p",
                "generateName": "web-",
                "namespace": "shop",
                "labels": { "app": "web", "pod-template-hash": "abc" },
                "annotations": { "note": "kept" },
                "finalizers": ["example.com/hold"],
                "ownerReferences": [{
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": "uid-of-web",
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "containers": [{ "name": "main", "image": "image", "brandNewField": { "deep": [1, 2.50, null] } }],
                "unknownField": "kept",
            },
        })
    );
    assert!(created.contains("2.5"), "the spec is copied as the API server returned it");
}

#[test]
fn a_bare_template_makes_a_bare_pod() {
    let owner =
        replica_set("web").with("/spec", "template", json!({ "metadata": { "labels": { "app": "web" } } })).build();
    let created: Value =
        serde_json::from_str(&json_of(&PodTemplate::of(&*owner, &owner.document).pod("web-1"))).unwrap();
    assert_eq!(created["metadata"]["labels"], json!({ "app": "web" }));
    assert_eq!((created.get("spec"), created["metadata"].get("annotations")), (None, None));
}
