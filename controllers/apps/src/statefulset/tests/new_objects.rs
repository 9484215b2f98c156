//! The pods and claims that are created.

use serde_json::{Value, json};

use super::fixtures::{merge, revision, set, with_claims};
use crate::shared::revisions::RevisionData;
use crate::statefulset::new_objects::{new_claim, new_pod};
use crate::statefulset::revisions::Revision;

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn of(template: &Value) -> Revision {
    let template = serde_json::value::to_raw_value(template).unwrap();
    Revision { name: "web-new".to_owned(), data: RevisionData::of(Some(&template)).unwrap() }
}

#[test]
fn a_pod_has_its_identity_and_the_template_of_its_revision() {
    let pod = parsed(&new_pod(&set(json!({})), &revision("web-new", "image:2"), 3).unwrap());
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-3",
            "generateName": "web-",
            "namespace": "shop",
            "labels": {
                "app": "web",
                "statefulset.kubernetes.io/pod-name": "web-3",
                "apps.kubernetes.io/pod-index": "3",
                "controller-revision-hash": "web-new",
            },
            "annotations": { "a": "b" },
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "name": "web",
                "uid": "uid-of-web",
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "containers": [{ "name": "main", "image": "image:2" }],
            "hostname": "web-3",
            "subdomain": "governing",
        },
    });
    assert_eq!(pod, expected);
}

#[test]
fn volumes_of_claims_come_first_and_replace_those_of_the_same_name() {
    let template = json!({ "spec": { "volumes": [
        { "name": "tmp", "emptyDir": {} },
        { "name": "data", "emptyDir": { "unknown": 1 } },
    ] } });
    let pod = parsed(&new_pod(&set(with_claims("Retain", "Retain")), &of(&template), 0).unwrap());
    let expected = json!([
        { "name": "data", "persistentVolumeClaim": { "claimName": "data-web-0" } },
        { "name": "tmp", "emptyDir": {} },
    ]);
    assert_eq!(pod["spec"]["volumes"], expected);
}

#[test]
fn what_is_not_known_of_a_template_is_copied_and_its_own_identity_is_not() {
    let template = json!({
        "metadata": {
            "name": "mine", "finalizers": ["example.com/f"], "ownerReferences": [{ "uid": "x" }],
            "labels": { "controller-revision-hash": "mine" },
        },
        "spec": { "hostname": "mine", "subdomain": "mine", "futureField": { "a": [1] } },
    });
    let without_service = set(json!({ "spec": { "serviceName": "" } }));
    let pod = parsed(&new_pod(&without_service, &of(&template), 0).unwrap());
    assert_eq!(pod["spec"], json!({ "hostname": "web-0", "futureField": { "a": [1] } }), "and no subdomain");
    assert_eq!(pod["metadata"]["finalizers"], json!(["example.com/f"]));
    assert_eq!(
        (&pod["metadata"]["name"], &pod["metadata"]["ownerReferences"][0]["name"]),
        (&json!("web-0"), &json!("web"))
    );
    assert_eq!(pod["metadata"]["labels"]["controller-revision-hash"], "web-new");
}

#[test]
fn a_claim_has_the_labels_of_its_template_and_of_the_selector() {
    let claim = parsed(&new_claim(&set(with_claims("Retain", "Retain")), 0, 2, None).unwrap());
    let expected = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data-web-2",
            "namespace": "shop",
            "labels": { "of": "template", "app": "web" },
            "annotations": { "a": "b" },
        },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    assert_eq!(claim, expected);
}

#[test]
fn a_label_of_the_selector_replaces_that_of_the_claim_template() {
    let mut changes = with_claims("Retain", "Retain");
    merge(&mut changes, json!({ "spec": { "selector": { "matchLabels": { "of": "selector" } } } }));
    let claim = parsed(&new_claim(&set(changes), 0, 0, None).unwrap());
    assert_eq!(claim["metadata"]["labels"], json!({ "of": "selector", "app": "web" }));
}

#[test]
fn a_template_that_cannot_be_read_is_an_error() {
    let none = Revision { name: "a".to_owned(), data: RevisionData::empty() };
    assert!(new_pod(&set(json!({})), &none, 0).is_err());
    assert!(new_pod(&set(json!({})), &of(&json!({ "spec": 1 })), 0).is_err());
    assert!(new_claim(&set(json!({})), 0, 0, None).is_err());
}
