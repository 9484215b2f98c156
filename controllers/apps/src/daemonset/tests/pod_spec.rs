//! The labels and the spec of new pods.

use serde_json::{Value, json};

use super::fixtures::{DaemonSetBuilder, daemon_set};
use crate::daemonset::pod_spec::{PodSpec, labels};
use crate::daemonset::revision::CurrentRevision;

fn spec(set: &DaemonSetBuilder) -> Value {
    let spec = PodSpec::of(&set.build()).and_then(|spec| spec.on("n1")).expect("the template must be valid");
    serde_json::from_str(spec.get()).expect("it is JSON")
}

fn added() -> Vec<Value> {
    let toleration = |name: &str, effect: &str| json!({ "key": format!("node.kubernetes.io/{name}"), "operator": "Exists", "effect": effect });
    vec![
        toleration("not-ready", "NoExecute"),
        toleration("unreachable", "NoExecute"),
        toleration("disk-pressure", "NoSchedule"),
        toleration("memory-pressure", "NoSchedule"),
        toleration("pid-pressure", "NoSchedule"),
        toleration("unschedulable", "NoSchedule"),
    ]
}

fn terms() -> Value {
    json!([{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n1"] }] }])
}

#[test]
fn a_pod_is_bound_to_its_node_and_tolerates_what_daemons_tolerate() {
    let required = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": terms(),
    } } });
    assert_eq!(
        spec(&daemon_set("agent").pod_spec("unknownField", json!([1]))),
        json!({
            "containers": [{ "name": "main", "image": "image:1" }],
            "unknownField": [1],
            "tolerations": added(),
            "affinity": required,
        })
    );
}

#[test]
fn the_terms_of_the_template_are_replaced_and_other_affinity_stays() {
    let affinity = json!({
        "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [] },
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": {} }],
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "disk", "operator": "Exists" }] }, {}],
            },
        },
    });
    let mut expected = affinity.clone();
    expected["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = terms();
    assert_eq!(spec(&daemon_set("agent").pod_spec("affinity", affinity))["affinity"], expected);
}

#[test]
fn a_toleration_for_some_time_becomes_one_for_ever_in_its_place() {
    let own = json!({ "key": "gpu", "operator": "Exists", "unknown": true });
    let limited = json!({ "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60 });
    let other = json!({ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule" });
    let set = daemon_set("agent").pod_spec("tolerations", json!([limited, own, other]));
    let mut expected = vec![added()[1].clone(), own, other];
    expected.extend(added().into_iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, toleration)| toleration));
    assert_eq!(spec(&set)["tolerations"], Value::from(expected));
}

#[test]
fn a_pod_in_the_network_of_its_node_tolerates_that_that_of_pods_is_unavailable() {
    let set = daemon_set("agent").pod_spec("hostNetwork", json!(true));
    let last = json!({ "key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule" });
    assert_eq!(spec(&set)["tolerations"][6], last);
}

#[test]
fn labels_are_those_of_the_template_with_hash_and_generation() {
    for (annotations, generation) in [
        (json!({}), None),
        (json!({ "deprecated.daemonset.template.generation": "3" }), Some("3")),
        (json!({ "deprecated.daemonset.template.generation": "many" }), None),
    ] {
        let set = daemon_set("agent").annotations(annotations).build();
        let labels = labels(&set, &CurrentRevision::new(&set, "abc")).expect("the template must be valid");
        let mut expected = json!({ "app": "agent", "controller-revision-hash": "abc" });
        if let Some(generation) = generation {
            expected["pod-template-generation"] = json!(generation);
        }
        assert_eq!(serde_json::from_str::<Value>(labels.get()).expect("it is JSON"), expected);
    }
}

#[test]
fn preferred_terms_stay_and_an_empty_selector_is_replaced() {
    let preferred = json!([{ "weight": 1, "preference": { "matchExpressions": [] } }]);
    let required = json!({ "nodeSelectorTerms": terms() });
    for (name, affinity, expected) in [
        (
            "preferred terms only",
            json!({ "preferredDuringSchedulingIgnoredDuringExecution": preferred }),
            json!({
                "preferredDuringSchedulingIgnoredDuringExecution": preferred,
                "requiredDuringSchedulingIgnoredDuringExecution": required,
            }),
        ),
        (
            "an empty selector",
            json!({ "requiredDuringSchedulingIgnoredDuringExecution": {} }),
            json!({ "requiredDuringSchedulingIgnoredDuringExecution": required }),
        ),
    ] {
        let set = daemon_set("agent").pod_spec("affinity", json!({ "nodeAffinity": affinity }));
        assert_eq!(spec(&set)["affinity"]["nodeAffinity"], expected, "{name}");
    }
}
