//! What the config map of a namespace lacks.

use kcm_framework::api::View as _;
use serde_json::{Value, json};

use crate::root_ca_certificate_publisher::plan::{Action, ConfigMap, plan};

const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                           endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                           guaranteed across distributions of Kubernetes clusters.";

fn config_map(annotations: &Value, data: &Value) -> Value {
    let metadata = json!({
        "namespace": "shop", "name": "kube-root-ca.crt", "resourceVersion": "7", "labels": { "a": "b" },
        "annotations": annotations,
    });
    json!({ "metadata": metadata, "data": data, "ofLater": true })
}

#[test]
fn data_is_the_root_ca_alone_and_the_description_is_there() {
    let described = json!({ "kubernetes.io/description": DESCRIPTION });
    let (right, old) = (json!({ "ca.crt": "CA" }), json!({ "ca.crt": "old" }));
    for (name, annotations, data, is_updated) in [
        ("right", described.clone(), right.clone(), false),
        ("another description", json!({ "kubernetes.io/description": "ours" }), right.clone(), false),
        ("an empty description", json!({ "kubernetes.io/description": "" }), right.clone(), true),
        ("no description", json!({ "b": "c" }), right.clone(), true),
        ("no annotations", json!(null), right.clone(), true),
        ("another CA", described.clone(), old, true),
        ("more data", described.clone(), json!({ "ca.crt": "CA", "b": "c" }), true),
        ("no data", described.clone(), json!(null), true),
    ] {
        let existing = config_map(&annotations, &data);
        let view = ConfigMap::decode(&existing.to_string()).unwrap();
        let written = match plan("shop", Some(&view), "CA").unwrap() {
            Action::None => None,
            Action::Update(updated) => Some(serde_json::from_str::<Value>(updated.document.as_str()).unwrap()),
            Action::Create(_) => panic!("{name}: it exists"),
        };
        let expected = is_updated.then(|| {
            let mut expected = existing.clone();
            expected["data"] = right.clone();
            expected["metadata"]["annotations"]["kubernetes.io/description"] = json!(DESCRIPTION);
            expected
        });
        assert_eq!(written, expected, "{name}");
    }
}

#[test]
fn a_missing_config_map_is_created() {
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "namespace": "shop", "name": "kube-root-ca.crt", "annotations": { "kubernetes.io/description": DESCRIPTION },
        },
        "data": { "ca.crt": "CA" },
    });
    assert_eq!(plan("shop", None, "CA").unwrap(), Action::Create(expected));
}
