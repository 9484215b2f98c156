//! `metadata.generation`: which changes increment it. Pure.
//!
//! # Upstream
//! `PrepareForCreate` and `PrepareForUpdate` of the strategies in `pkg/registry`

use serde_json::{Value, json};

use crate::json::{self, at};
use crate::kinds::Kind;

/// Built-in resources that increment `metadata.generation`.
const COUNTED: [(&str, &str); 29] = [
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
    ("discovery.k8s.io", "endpointslices"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("networking.k8s.io", "ingressclasses"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "devicetaintrules"),
    ("resource.k8s.io", "resourceslices"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "csidrivers"),
];

/// The count of changes to its template that a daemon set carries for old clients.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(crate) fn is_counted(group: &str, plural: &str) -> bool {
    COUNTED.contains(&(group, plural))
}

/// Sets the generation of a new object; other kinds keep the value of the client.
pub(crate) fn begin(kind: &Kind, object: &mut Value) {
    // The first change of a CSI driver makes its first generation.
    if kind.generation && kind.resource.plural != "csidrivers" {
        json::set(object, &["metadata", "generation"], Some(1.into()));
    }
    if is_daemon_set(kind) && template_generation(object) < 1 {
        set_template_generation(object, 1);
    }
}

/// Counts a change of the whole object, if it is one of the desired state.
pub(crate) fn count(kind: &Kind, old: &Value, new: &mut Value) {
    json::carry_over(old, new, &["metadata", "generation"]);
    if is_daemon_set(kind) {
        let changed = at(old, &["spec", "template"]) != at(new, &["spec", "template"]);
        set_template_generation(new, template_generation(old) + i64::from(changed));
    }
    if kind.generation && differs(kind, old, new) {
        let generation = at(old, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
        json::set(new, &["metadata", "generation"], Some((generation + 1).into()));
    }
}

fn differs(kind: &Kind, old: &Value, new: &Value) -> bool {
    let differs = |path: &[&str]| at(old, path) != at(new, path);
    if kind.is_custom() {
        return without(old, kind.status) != without(new, kind.status);
    }
    match &*kind.resource.plural {
        // Annotations are copied to the replica sets, so they count.
        "deployments" => differs(&["spec"]) || differs(&["metadata", "annotations"]),
        "endpointslices" => without(old, false) != without(new, false) || differs(&["metadata", "labels"]),
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => differs(&["webhooks"]),
        "podtemplates" => differs(&["template"]),
        "priorityclasses" => false,
        _ => differs(&["spec"]),
    }
}

/// An object without its metadata, and without its status if that is written separately.
fn without(object: &Value, status: bool) -> Value {
    let mut object = object.clone();
    json::set(&mut object, &["metadata"], None);
    if status {
        json::set(&mut object, &["status"], None);
    }
    object
}

fn is_daemon_set(kind: &Kind) -> bool {
    kind.resource.plural == "daemonsets" && kind.resource.group == "apps"
}

fn template_generation(object: &Value) -> i64 {
    let annotation = json::text(object, &["metadata", "annotations", TEMPLATE_GENERATION]);
    annotation.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn set_template_generation(object: &mut Value, generation: i64) {
    json::set(object, &["metadata", "annotations", TEMPLATE_GENERATION], Some(json!(generation.to_string())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn each_kind_counts_changes_of_what_it_wants() {
        let kinds = Kinds::built_in(true);
        for (group, version, plural, change, expected) in [
            ("apps", "v1", "deployments", json!({ "spec": { "replicas": 2 } }), Some(2)),
            ("apps", "v1", "deployments", json!({ "metadata": { "annotations": { "a": "b" } } }), Some(2)),
            ("apps", "v1", "deployments", json!({ "metadata": { "labels": { "a": "b" } } }), Some(1)),
            ("apps", "v1", "replicasets", json!({ "metadata": { "annotations": { "a": "b" } } }), Some(1)),
            ("apps", "v1", "statefulsets", json!({ "spec": { "replicas": 2 } }), Some(2)),
            ("discovery.k8s.io", "v1", "endpointslices", json!({ "endpoints": [] }), Some(2)),
            ("discovery.k8s.io", "v1", "endpointslices", json!({ "metadata": { "labels": { "a": "b" } } }), Some(2)),
            (
                "discovery.k8s.io",
                "v1",
                "endpointslices",
                json!({ "metadata": { "annotations": { "a": "b" } } }),
                Some(1),
            ),
            ("", "v1", "podtemplates", json!({ "template": {} }), Some(2)),
            ("scheduling.k8s.io", "v1", "priorityclasses", json!({ "value": 2 }), Some(1)),
            ("storage.k8s.io", "v1", "csidrivers", json!({ "spec": { "a": 1 } }), Some(1)),
            ("storage.k8s.io", "v1", "csidrivers", json!({ "metadata": { "labels": { "a": "b" } } }), None),
            ("", "v1", "configmaps", json!({ "data": { "a": "b" } }), None),
            ("autoscaling", "v2", "horizontalpodautoscalers", json!({ "spec": { "maxReplicas": 2 } }), Some(2)),
        ] {
            let kind = kinds.find(group, version, plural).expect("the kind is built in");
            let mut old = json!({ "metadata": { "name": "a" } });
            begin(kind, &mut old);
            let mut new = old.clone();
            crate::json::merge(&mut new, &change);
            count(kind, &old, &mut new);
            let found = at(&new, &["metadata", "generation"]).and_then(Value::as_i64);
            assert_eq!(found, expected, "{plural} {change}");
        }
    }

    #[test]
    fn a_daemon_set_counts_its_templates_in_an_annotation() {
        let kinds = Kinds::built_in(false);
        let kind = kinds.find("apps", "v1", "daemonsets").expect("daemon sets are built in");
        let mut old = json!({ "metadata": {} });
        begin(kind, &mut old);
        assert_eq!(template_generation(&old), 1);
        let mut new = old.clone();
        json::set(&mut new, &["spec", "template", "a"], Some(1.into()));
        json::set(&mut new, &["metadata", "annotations"], None);
        count(kind, &old, &mut new);
        assert_eq!(template_generation(&new), 2);
        assert_eq!(new["metadata"]["generation"], 2);
    }
}
