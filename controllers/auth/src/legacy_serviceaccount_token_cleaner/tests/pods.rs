//! The secrets that pods name.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::legacy_serviceaccount_token_cleaner::observe::collect_secrets;

fn names(spec: &Value) -> Vec<String> {
    let mut names = BTreeSet::new();
    collect_secrets(spec, &mut names);
    names.into_iter().collect()
}

#[test]
fn every_field_that_names_a_secret_counts() {
    let of = |kind: &str| json!({ "name": format!("of-{kind}") });
    let with = |kind: &str| json!({ "secretRef": of(kind) });
    let env = |kind: &str| json!([{ "name": "A", "valueFrom": { "secretKeyRef": { "name": kind, "key": "a" } } }]);
    let spec = json!({
        "imagePullSecrets": [of("pull")],
        "containers": [{ "env": env("env"), "envFrom": [with("env-from")] }],
        "initContainers": [{ "env": env("init") }],
        "ephemeralContainers": [{ "env": env("ephemeral") }],
        "volumes": [
            { "azureFile": { "secretName": "azure" } },
            { "cephfs": with("ceph") },
            { "cinder": with("cinder") },
            { "flexVolume": with("flex") },
            { "projected": { "sources": [{ "secret": of("projected") }] } },
            { "rbd": with("rbd") },
            { "secret": { "secretName": "volume" } },
            { "scaleIO": with("scale") },
            { "iscsi": with("iscsi") },
            { "storageos": with("storageos") },
            { "csi": { "nodePublishSecretRef": of("csi") } },
        ],
    });
    let expected = [
        "azure",
        "env",
        "ephemeral",
        "init",
        "of-ceph",
        "of-cinder",
        "of-csi",
        "of-env-from",
        "of-flex",
        "of-iscsi",
        "of-projected",
        "of-pull",
        "of-rbd",
        "of-scale",
        "of-storageos",
        "volume",
    ];
    assert_eq!(names(&spec), expected);
}

#[test]
fn what_is_no_reference_to_a_secret_does_not_count() {
    let spec = json!({
        "serviceAccountName": "robot", "nodeName": "node",
        "containers": [{
            "name": "secret", "env": [{ "name": "secretName", "value": "x" }], "envFrom": [{ "configMapRef": { "name": "map" } }],
        }],
        "volumes": [{ "name": "secret", "configMap": { "name": "map" } }, { "secret": { "secretName": "" } }],
    });
    assert_eq!(names(&spec), [""; 0]);
}
