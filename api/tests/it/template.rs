//! When two pod templates are the same.

use kcm_api::{same_template, template_hash};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).expect("the case must be JSON")
}

fn assert_same(one: &RawValue, other: &RawValue) {
    assert!(same_template(one, other) && same_template(other, one), "{one} {other}");
    assert_eq!(template_hash(one, Some(1)), template_hash(other, Some(1)), "{one} {other}");
}

fn assert_different(one: &RawValue, other: &RawValue) {
    assert!(!same_template(one, other) && !same_template(other, one), "{one} {other}");
    assert_ne!(template_hash(one, None), template_hash(other, None), "{one} {other}");
}

#[test]
fn the_hash_label_of_the_template_does_not_count() {
    for (one, other) in [
        (json!({"app": "web", "pod-template-hash": "a"}), json!({"app": "web", "pod-template-hash": "b"})),
        (json!({"app": "web", "pod-template-hash": "a"}), json!({"app": "web"})),
        (json!({"pod-template-hash": "a"}), json!(null)),
    ] {
        let [one, other] = [one, other].map(|labels| to_raw_value(&json!({"metadata": {"labels": labels}})).unwrap());
        assert_same(&one, &other);
    }
    for (place, one) in [
        ("an annotation", json!({"metadata": {"annotations": {"pod-template-hash": "a"}}})),
        ("a node selector", json!({"spec": {"nodeSelector": {"pod-template-hash": "a"}}})),
    ] {
        let other = to_raw_value(&json!({})).unwrap();
        assert!(!same_template(&to_raw_value(&one).unwrap(), &other), "{place}");
    }
}

#[test]
fn absent_null_and_empty_are_alike_where_go_makes_no_difference() {
    for template in [
        r#"{"metadata":{"creationTimestamp":null}}"#,
        r#"{"metadata":{},"spec":{}}"#,
        r#"{"metadata":null,"spec":null}"#,
        r#"{"metadata":{"labels":{},"annotations":{ }}}"#,
        r#"{"metadata":{"labels":{"pod-template-hash":"a"}}}"#,
        r#"{"spec":{"containers":[],"volumes":null,"tolerations":[ ]}}"#,
        r#"{"spec":{"nodeSelector":{},"overhead":{}}}"#,
        r#"{"spec":{"novel":[],"alsoNovel":null}}"#,
    ] {
        assert_same(raw("{}"), raw(template));
    }
    for (one, other) in [
        (r#"{"name":"c"}"#, r#"{"name":"c","resources":{}}"#),
        (r#"{"name":"c"}"#, r#"{"name":"c","resources":{"limits":{},"requests":null}}"#),
        (r#"{"name":"c","env":[{"name":"e"}]}"#, r#"{"name":"c","env":[{"name":"e","value":null}],"args":[]}"#),
    ] {
        let [one, other] = [one, other].map(|container| format!(r#"{{"spec":{{"containers":[{container}]}}}}"#));
        assert_same(raw(&one), raw(&other));
    }
}

#[test]
fn an_empty_structure_that_says_something_by_being_there_counts() {
    for (one, other) in [
        (r#"{"volumes":[{"name":"v"}]}"#, r#"{"volumes":[{"name":"v","emptyDir":{}}]}"#),
        (r"{}", r#"{"securityContext":{}}"#),
        (r"{}", r#"{"resources":{}}"#),
        (r"{}", r#"{"novel":{}}"#),
        (r#"{"tolerations":[]}"#, r#"{"tolerations":[{}]}"#),
        (
            r#"{"topologySpreadConstraints":[{"maxSkew":1}]}"#,
            r#"{"topologySpreadConstraints":[{"maxSkew":1,"labelSelector":{}}]}"#,
        ),
        (
            r#"{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a"}]}}}"#,
            r#"{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","namespaceSelector":{}}]}}}"#,
        ),
    ] {
        let [one, other] = [one, other].map(|spec| format!(r#"{{"spec":{spec}}}"#));
        assert_different(raw(&one), raw(&other));
    }
}

/// The spec of a pod with a value in one place.
type Place = fn(Value) -> Value;

const QUANTITIES: &[Place] = &[
    |q| json!({"containers": [{"resources": {"limits": {"cpu": q}}}]}),
    |q| json!({"containers": [{}, {"resources": {"requests": {"example.com/gpu": q}}}]}),
    |q| json!({"initContainers": [{"resources": {"limits": {"memory": q}}}]}),
    |q| json!({"ephemeralContainers": [{"resources": {"requests": {"cpu": q}}}]}),
    |q| json!({"resources": {"limits": {"cpu": q}}}),
    |q| json!({"resources": {"requests": {"hugepages-2Mi": q}}}),
    |q| json!({"overhead": {"memory": q}}),
    |q| json!({"volumes": [{"emptyDir": {"sizeLimit": q}}]}),
    |q| json!({"containers": [{"env": [{"valueFrom": {"resourceFieldRef": {"divisor": q}}}]}]}),
    |q| json!({"volumes": [{"downwardAPI": {"items": [{"resourceFieldRef": {"divisor": q}}]}}]}),
    |q| json!({"volumes": [{"projected": {"sources": [{"downwardAPI": {"items": [{"resourceFieldRef": {"divisor": q}}]}}]}}]}),
    |q| json!({"volumes": [{"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": q}}}}}}]}),
    |q| json!({"volumes": [{"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"limits": {"storage": q}}}}}}]}),
];

const NO_QUANTITIES: &[Place] = &[
    |q| json!({"nodeSelector": {"cpu": q}}),
    |q| json!({"containers": [{"args": [q]}]}),
    |q| json!({"containers": [{"env": [{"name": "e", "value": q}]}]}),
    |q| json!({"containers": [{"novel": {"limits": {"cpu": q}}}]}),
    |q| json!({"containers": [{"livenessProbe": {"httpGet": {"port": q}}}]}),
];

fn with(place: Place, quantity: &Value) -> Box<RawValue> {
    to_raw_value(&json!({"spec": place(quantity.clone())})).expect("a value must serialize")
}

#[test]
fn quantities_count_by_value_where_they_stand() {
    for place in QUANTITIES {
        for (one, other) in [(json!("1"), json!("1000m")), (json!("1Gi"), json!("1024Mi")), (json!(0.5), json!("500m"))]
        {
            assert_same(&with(*place, &one), &with(*place, &other));
        }
        for (one, other) in [(json!("1"), json!("1001m")), (json!("1G"), json!("1Gi")), (json!("1"), json!("a lot"))] {
            assert_different(&with(*place, &one), &with(*place, &other));
        }
    }
}

#[test]
fn what_looks_like_a_quantity_elsewhere_counts_as_text() {
    for place in NO_QUANTITIES {
        for (one, other) in [(json!("1"), json!("1000m")), (json!(1), json!("1"))] {
            assert_different(&with(*place, &one), &with(*place, &other));
        }
    }
}

#[test]
fn numbers_count_by_value() {
    for (one, other, same) in [
        ("1", "1.0", true),
        ("1", "1e0", true),
        ("100", "1E+2", true),
        ("0", "-0.0", true),
        ("0.1", "1e-1", true),
        ("18446744073709551616", "18446744073709551617", false),
        ("0.1", "0.10000000000000000001", false),
        ("1", "-1", false),
        ("1", "\"1\"", false),
        ("1", "true", false),
        ("0", "false", false),
    ] {
        let [one, other] = [one, other].map(|number| format!(r#"{{"spec":{{"novel":{{"n":{number}}}}}}}"#));
        if same { assert_same(raw(&one), raw(&other)) } else { assert_different(raw(&one), raw(&other)) }
    }
}

#[test]
fn strings_count_without_regard_to_escapes() {
    for (one, other, same) in [
        (r#""a/b""#, r#""a\/b""#, true),
        (r#""<é>""#, r#""\u003c\u00e9\u003E""#, true),
        (r#""\u000a""#, r#""\n""#, true),
        (r#""😀""#, r#""\ud83d\ude00""#, true),
        (r#""a""#, r#""A""#, false),
        (r#""""#, r#"" ""#, false),
        (r#""\ud800""#, r#""\ud801""#, false),
    ] {
        let [one, other] = [one, other].map(|text| format!(r#"{{"spec":{{"containers":[{{"image":{text}}}]}}}}"#));
        if same { assert_same(raw(&one), raw(&other)) } else { assert_different(raw(&one), raw(&other)) }
    }
    assert_same(raw(r#"{"\u0073pec":{"a":1}}"#), raw(r#"{"spec":{"a":1}}"#));
}

#[test]
fn the_order_of_lists_counts_and_that_of_members_does_not() {
    assert_same(
        raw(r#"{"spec":{"a":1,"b":2},"metadata":{"x":1}}"#),
        raw(r#"{"metadata":{"x":1},"spec":{"b":2,"a":1}}"#),
    );
    for (one, other) in [
        (
            r#"{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}"#,
            r#"{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}"#,
        ),
        (r#"{"spec":{"tolerations":[{"key":"a"}]}}"#, r#"{"spec":{"tolerations":[{"key":"a"},{"key":"a"}]}}"#),
    ] {
        assert_different(raw(one), raw(other));
    }
}

#[test]
fn an_unknown_field_counts() {
    for (one, other) in [
        (r#"{"novel":1}"#, r"{}"),
        (r#"{"metadata":{"novel":"a"}}"#, r#"{"metadata":{"novel":"b"}}"#),
        (r#"{"spec":{"containers":[{"name":"c"}]}}"#, r#"{"spec":{"containers":[{"name":"c","novel":false}]}}"#),
        (
            r#"{"spec":{"containers":[{"resources":{"novel":"1"}}]}}"#,
            r#"{"spec":{"containers":[{"resources":{"novel":"1000m"}}]}}"#,
        ),
    ] {
        assert_different(raw(one), raw(other));
    }
}

#[test]
fn each_collision_count_makes_another_hash() {
    let template = raw(r#"{"spec":{"containers":[{"name":"c"}]}}"#);
    let hashes: std::collections::BTreeSet<_> =
        [None, Some(0), Some(1), Some(2), Some(i32::MAX)].map(|count| template_hash(template, count)).into();
    assert_eq!(hashes.len(), 5);
    for hash in hashes {
        assert_eq!(hash.len(), 10);
        assert!(hash.chars().all(|character| "bcdfghjklmnpqrstvwxz2456789".contains(character)), "{hash}");
    }
}
