//! Objects that are refused.

use kcm_sandbox_apiserver::Sandbox;
use serde_json::json;

use crate::rows::{PODS, SETS};
use crate::support::{pod, post, replica_set, with};

#[tokio::test(start_paused = true)]
async fn refuses_invalid_objects_with_causes() {
    let no_containers = with(pod("web"), &json!({ "spec": { "containers": [] } }));
    let no_image = with(pod("web"), &json!({ "spec": { "containers": [{ "name": "main" }] } }));
    let other_labels =
        with(replica_set("web"), &json!({ "spec": { "template": { "metadata": { "labels": { "app": "api" } } } } }));
    let no_selector = with(replica_set("web"), &json!({ "spec": { "selector": null } }));
    let empty_selector = with(replica_set("web"), &json!({ "spec": { "selector": { "matchLabels": null } } }));
    let negative = with(replica_set("web"), &json!({ "spec": { "replicas": -1 } }));
    let never = with(replica_set("web"), &json!({ "spec": { "template": { "spec": { "restartPolicy": "Never" } } } }));
    let owner = |name: &str| json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": true });
    let two_controllers = with(pod("web"), &json!({ "metadata": { "ownerReferences": [owner("a"), owner("b")] } }));
    let cases = [
        (PODS, no_containers, "spec.containers", "FieldValueRequired", "Required value"),
        (PODS, no_image, "spec.containers[0].image", "FieldValueRequired", "Required value"),
        (
            PODS,
            two_controllers,
            "metadata.ownerReferences",
            "FieldValueInvalid",
            "Only one reference can have Controller set to true. Found \"true\" in references for ReplicaSet/a and ReplicaSet/b",
        ),
        (
            SETS,
            other_labels,
            "spec.template.metadata.labels",
            "FieldValueInvalid",
            "Invalid value: {\"app\":\"api\"}: `selector` does not match template `labels`",
        ),
        (SETS, no_selector, "spec.selector", "FieldValueRequired", "Required value"),
        (SETS, empty_selector, "spec.selector", "FieldValueInvalid", "empty selector is invalid for deployment"),
        (SETS, negative, "spec.replicas", "FieldValueInvalid", "Invalid value: -1: must be greater than or equal to 0"),
        (
            SETS,
            never,
            "spec.template.spec.restartPolicy",
            "FieldValueNotSupported",
            "Unsupported value: \"Never\": supported values: \"Always\"",
        ),
        (PODS, pod("Web"), "metadata.name", "FieldValueInvalid", "a lowercase RFC 1123 subdomain"),
    ];
    for (path, object, field, cause, text) in cases {
        let sandbox = Sandbox::default();
        let answer = crate::support::call(&sandbox, &post(path, &object)).await.expect("no fault is at work");
        assert_eq!((answer.code, answer.text_at("/reason")), (422, "Invalid"), "{field}: {}", answer.text);
        assert_eq!(answer.text_at("/details/causes/0/field"), field);
        assert_eq!(answer.text_at("/details/causes/0/reason"), cause, "{field}");
        assert!(answer.text_at("/details/causes/0/message").contains(text), "{field}: {}", answer.text);
        assert!(answer.text_at("/message").contains(field), "{field}: {}", answer.text);
    }
}
