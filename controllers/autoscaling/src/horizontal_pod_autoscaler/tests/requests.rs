//! The requests that metrics take.

use kcm_framework::api::Selector;
use serde_json::{Value, json};

use crate::horizontal_pod_autoscaler::requests::{Api, NoRequest, request_of};
use crate::horizontal_pod_autoscaler::spec::{Metric, Source};

pub(super) fn metric(spec: &Value) -> Metric {
    serde_json::from_value(spec.clone()).expect("it is a metric")
}

fn resource_of(group: &str, kind: &str) -> Option<String> {
    match (group, kind) {
        ("", "Service") => Some("services".to_owned()),
        ("networking.k8s.io", "Ingress") => Some("ingresses.networking.k8s.io".to_owned()),
        _ => None,
    }
}

#[test]
fn each_metric_is_read_from_its_api() {
    let selector: Selector = "app in (a, b)".parse().unwrap();
    let labels = json!({ "matchLabels": { "queue": "a_b" } });
    let value = json!({ "type": "Value", "value": "1" });
    let average = json!({ "type": "AverageValue", "averageValue": "1" });
    for (name, spec, api, path, described) in [
        (
            "resource",
            json!({ "type": "Resource", "resource": { "name": "cpu", "target": average } }),
            Api::Resource,
            "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%20in%20%28a%2Cb%29",
            "pods.metrics.k8s.io",
        ),
        (
            "container",
            json!({ "type": "ContainerResource", "containerResource": {
                "name": "cpu", "container": "main", "target": { "type": "Utilization", "averageUtilization": 50 },
            } }),
            Api::Resource,
            "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%20in%20%28a%2Cb%29",
            "pods.metrics.k8s.io",
        ),
        (
            "pods",
            json!({ "type": "Pods", "pods": { "metric": { "name": "qps", "selector": labels }, "target": average } }),
            Api::Custom,
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/qps?labelSelector=app%20in%20%28a%2Cb%29&metricLabelSelector=queue%3Da_b",
            "pods.custom.metrics.k8s.io *",
        ),
        (
            "object of a group",
            json!({ "type": "Object", "object": {
                "describedObject": { "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main" },
                "metric": { "name": "qps" }, "target": value,
            } }),
            Api::Custom,
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/ingresses.networking.k8s.io/main/qps",
            "ingresses.networking.k8s.io.custom.metrics.k8s.io main",
        ),
        (
            "the namespace, whatever its name",
            json!({ "type": "Object", "object": {
                "describedObject": { "apiVersion": "v1", "kind": "Namespace", "name": "other" },
                "metric": { "name": "qps" }, "target": value,
            } }),
            Api::Custom,
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/metrics/qps",
            "metrics.custom.metrics.k8s.io qps",
        ),
        (
            "external, with a name that needs an escape",
            json!({ "type": "External", "external": { "metric": { "name": "q?s" }, "target": value } }),
            Api::External,
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/q%3Fs",
            "q?s.external.metrics.k8s.io",
        ),
    ] {
        let request = request_of(&metric(&spec), "shop", &selector, resource_of).expect(name);
        assert_eq!((request.api(), request.path("v1beta2").as_str()), (api, path), "{name}");
        assert_eq!(request.described(), described, "{name}");
    }
}

#[test]
fn a_metric_without_a_target_selector_or_kind_takes_no_request() {
    let selector = Selector::everything();
    let invalid = |message: &str| NoRequest::Invalid(message.to_owned());
    let broken = json!({ "matchExpressions": [{ "key": "a", "operator": "Is" }] });
    let average = json!({ "type": "AverageValue", "averageValue": "1" });
    let mismatched = json!({ "type": "Utilization", "averageValue": "1" });
    let service = json!({ "apiVersion": "v1", "kind": "Service", "name": "web" });
    for (name, spec, expected) in [
        (
            "resource",
            json!({ "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization" } } }),
            invalid(
                "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set",
            ),
        ),
        (
            "object whose type is not that of its target",
            json!({ "type": "Object", "object": { "describedObject": service, "metric": { "name": "q" }, "target": mismatched } }),
            invalid("invalid object metric source: neither a value target nor an average value target was set"),
        ),
        (
            "external",
            json!({ "type": "External", "external": { "metric": { "name": "q" }, "target": { "type": "Value" } } }),
            invalid("invalid external metric source: neither a value target nor an average value target was set"),
        ),
        (
            "a broken selector",
            json!({ "type": "Pods", "pods": { "metric": { "name": "q", "selector": broken }, "target": average } }),
            invalid("\"Is\" is not a valid label selector operator"),
        ),
        ("an unknown type", json!({ "type": "Mood" }), invalid("unknown metric source type \"Mood\"")),
        (
            "an unknown kind",
            json!({ "type": "Object", "object": {
                "describedObject": { "apiVersion": "example.com/v1", "kind": "Lamp", "name": "a" },
                "metric": { "name": "q" }, "target": average,
            } }),
            NoRequest::Unmapped(
                "unable to fetch metrics from custom metrics API: unable to map kind Lamp.example.com to resource: \
                 no matches for kind \"Lamp\" in group \"example.com\""
                    .to_owned(),
            ),
        ),
    ] {
        assert_eq!(request_of(&metric(&spec), "shop", &selector, resource_of), Err(expected), "{name}");
    }
}

#[test]
fn selectors_are_printed_as_go_prints_them() {
    let of = |selector: Value| {
        let spec = json!({ "type": "External", "external": { "metric": { "name": "q", "selector": selector } } });
        let Source::External { metric } = metric(&spec).source else { panic!("it is external") };
        metric.selector_in_go()
    };
    assert_eq!(of(Value::Null), "nil");
    assert_eq!(
        of(json!({
            "matchLabels": { "b": "2", "a": "1" },
            "matchExpressions": [{ "key": "c", "operator": "In", "values": ["x", "y"] }],
        })),
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},\
         MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:c,Operator:In,Values:[x y],},},}"
    );
}
