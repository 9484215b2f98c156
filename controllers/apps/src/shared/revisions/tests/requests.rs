//! The object of a new revision. The requests are tested with their controllers.

use std::collections::BTreeMap;

use kcm_framework::api::View as _;
use kcm_framework::api::views::ReplicaSet;
use kcm_framework::ownership::Owner;
use serde_json::json;

use super::{data, raw};
use crate::shared::revisions::NewRevision;

#[test]
fn a_new_revision_is_written_as_upstream_writes_it() {
    let owner = r#"{"metadata":{"namespace":"shop","name":"web","uid":"uid-of-web"}}"#;
    let owner = ReplicaSet::decode(owner).unwrap();
    let data = data(r#"{"spec":{"a":"<"}}"#);
    let new = NewRevision {
        owner: Owner::of(&owner),
        name: "web-abc",
        labels: BTreeMap::from([("app", "web"), ("controller.kubernetes.io/hash", "abc")]),
        annotations: Some(raw(r#"{"example.com/note":"<kept>"}"#)),
        data: &data,
        revision: 3,
    };
    let written = serde_json::to_string(&new.object()).unwrap();
    assert!(written.contains(data.as_str()), "byte for byte: {written}");
    let expected = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": "web-abc",
            "namespace": "shop",
            "labels": { "app": "web", "controller.kubernetes.io/hash": "abc" },
            "annotations": { "example.com/note": "<kept>" },
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "uid-of-web",
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "data": { "spec": { "template": { "$patch": "replace", "spec": { "a": "<" } } } },
        "revision": 3,
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), expected);
}
