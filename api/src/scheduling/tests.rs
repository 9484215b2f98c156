use serde_json::{Value, json};

use super::*;
use crate::{InternedStr, Labels};

fn toleration(json: Value) -> Toleration {
    serde_json::from_value(json).unwrap()
}

fn taint(key: &str, value: &str, effect: &str) -> Taint {
    serde_json::from_value(json!({ "key": key, "value": value, "effect": effect })).unwrap()
}

#[test]
fn tolerations_tolerate_as_upstream() {
    let disk = taint("disk", "ssd", "NoSchedule");
    for (name, of, expected) in [
        ("key and value", json!({ "key": "disk", "value": "ssd" }), true),
        ("Equal", json!({ "key": "disk", "operator": "Equal", "value": "ssd", "effect": "NoSchedule" }), true),
        ("another value", json!({ "key": "disk", "value": "hdd" }), false),
        ("no value", json!({ "key": "disk" }), false),
        ("Exists", json!({ "key": "disk", "operator": "Exists" }), true),
        ("Exists of another key", json!({ "key": "gpu", "operator": "Exists" }), false),
        ("Exists of another effect", json!({ "key": "disk", "operator": "Exists", "effect": "NoExecute" }), false),
        ("everything", json!({ "operator": "Exists" }), true),
        ("every key of a value", json!({ "value": "ssd" }), true),
        ("an unknown operator", json!({ "key": "disk", "operator": "Matches", "value": "ssd" }), false),
    ] {
        assert_eq!(toleration(of).tolerates(&disk, ComparisonOperators::Disabled), expected, "{name}");
    }
}

#[test]
fn comparison_operators_compare_integers_behind_their_gate() {
    // taint, operator, toleration
    for (value, operator, bound, expected) in [
        ("950", "Gt", "900", true),
        ("900", "Gt", "900", false),
        ("800", "Gt", "900", false),
        ("800", "Lt", "900", true),
        ("-7", "Lt", "0", true),
        ("0", "Gt", "-1", true),
        ("0950", "Gt", "900", false),
        ("950", "Gt", "+900", false),
        ("-0", "Lt", "900", false),
        ("", "Lt", "900", false),
        ("9223372036854775808", "Gt", "900", false),
        ("1.5", "Lt", "900", false),
    ] {
        let (taint, of) =
            (taint("sla", value, "NoExecute"), json!({ "key": "sla", "operator": operator, "value": bound }));
        let of = toleration(of);
        assert_eq!(of.tolerates(&taint, ComparisonOperators::Enabled), expected, "{value} {operator} {bound}");
        assert!(!of.tolerates(&taint, ComparisonOperators::Disabled), "the gate is off");
    }
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().copied().collect()
}

#[test]
fn required_node_affinity_selects_as_upstream() {
    let node = labels(&[("arch", "amd64"), ("cores", "8")]);
    let expression =
        |key: &str, operator: &str, values: &[&str]| json!({ "key": key, "operator": operator, "values": values });
    let by_labels = |expression: Value| json!([{ "matchExpressions": [expression] }]);
    let by_fields = |expression: Value| json!([{ "matchFields": [expression] }]);
    for (name, selector, terms, expected) in [
        ("nothing is required", json!({}), Value::Null, true),
        ("the label of the node selector", json!({ "arch": "amd64" }), Value::Null, true),
        ("another label", json!({ "arch": "arm64" }), Value::Null, false),
        ("one of two labels", json!({ "arch": "amd64", "gpu": "yes" }), Value::Null, false),
        ("no terms match nothing", json!({}), json!([]), false),
        ("an empty term matches nothing", json!({}), json!([{}]), false),
        ("In", json!({}), by_labels(expression("arch", "In", &["arm64", "amd64"])), true),
        ("NotIn", json!({}), by_labels(expression("arch", "NotIn", &["amd64"])), false),
        ("NotIn of a missing label", json!({}), by_labels(expression("gpu", "NotIn", &["yes"])), true),
        ("Exists", json!({}), by_labels(expression("arch", "Exists", &[])), true),
        ("DoesNotExist", json!({}), by_labels(expression("arch", "DoesNotExist", &[])), false),
        ("Gt", json!({}), by_labels(expression("cores", "Gt", &["4"])), true),
        ("Gt of the same", json!({}), by_labels(expression("cores", "Gt", &["8"])), false),
        ("Lt", json!({}), by_labels(expression("cores", "Lt", &["9"])), true),
        ("Lt of a label that is no number", json!({}), by_labels(expression("arch", "Lt", &["9"])), false),
        ("Gt with two values is not valid", json!({}), by_labels(expression("cores", "Gt", &["1", "2"])), false),
        ("Gt with no number is not valid", json!({}), by_labels(expression("cores", "Gt", &["x"])), false),
        ("an unknown operator is not valid", json!({}), by_labels(expression("arch", "Like", &["amd64"])), false),
        (
            "a valid term beside one that is not",
            json!({}),
            json!([
                { "matchExpressions": [expression("arch", "Like", &[])] },
                { "matchExpressions": [expression("arch", "Exists", &[])] },
            ]),
            true,
        ),
        (
            "all expressions of a term",
            json!({}),
            json!([{ "matchExpressions": [expression("arch", "Exists", &[]), expression("gpu", "Exists", &[])] }]),
            false,
        ),
        ("the name of the node", json!({}), by_fields(expression("metadata.name", "In", &["n1"])), true),
        ("the name of another node", json!({}), by_fields(expression("metadata.name", "In", &["n2"])), false),
        ("not the name of another node", json!({}), by_fields(expression("metadata.name", "NotIn", &["n2"])), true),
        ("two names are not valid", json!({}), by_fields(expression("metadata.name", "In", &["n1", "n2"])), false),
        (
            "an operator that fields do not have",
            json!({}),
            by_fields(expression("metadata.name", "Exists", &[])),
            false,
        ),
        ("a field that nodes do not have", json!({}), by_fields(expression("spec.x", "In", &["n1"])), false),
        ("not a field that nodes do not have", json!({}), by_fields(expression("spec.x", "NotIn", &["n1"])), true),
        (
            "labels and fields of one term",
            json!({}),
            json!([{
                "matchExpressions": [expression("arch", "In", &["arm64"])],
                "matchFields": [expression("metadata.name", "In", &["n1"])],
            }]),
            false,
        ),
        (
            "node selector and terms",
            json!({ "arch": "arm64" }),
            by_fields(expression("metadata.name", "In", &["n1"])),
            false,
        ),
    ] {
        let selector: Labels = serde_json::from_value(selector).unwrap();
        let required: Option<NodeSelector> =
            (!terms.is_null()).then(|| serde_json::from_value(json!({ "nodeSelectorTerms": terms })).unwrap());
        let affinity = RequiredNodeAffinity::new(&selector, required.as_ref());
        assert_eq!(affinity.matches("n1", &node), expected, "{name}");
    }
}

#[test]
fn the_target_of_a_pod_is_the_one_node_that_it_selects_by_name() {
    let name =
        |operator: &str, values: &[&str]| json!({ "key": "metadata.name", "operator": operator, "values": values });
    for (case, terms, expected) in [
        ("no terms", json!([]), None),
        ("a node", json!([{ "matchFields": [name("In", &["n1"])] }]), Some("n1")),
        ("in the second term", json!([{}, { "matchFields": [name("In", &["n1"])] }]), Some("n1")),
        ("two nodes", json!([{ "matchFields": [name("In", &["n1", "n2"])] }]), None),
        ("two nodes first", json!([{ "matchFields": [name("In", &[]), name("In", &["n2"])] }]), None),
        ("all but a node", json!([{ "matchFields": [name("NotIn", &["n1"])] }]), None),
        ("by a label", json!([{ "matchExpressions": [name("In", &["n1"])] }]), None),
    ] {
        let selector: NodeSelector = serde_json::from_value(json!({ "nodeSelectorTerms": terms })).unwrap();
        assert_eq!(selector.target_node().map(InternedStr::as_str), expected, "{case}");
    }
}
