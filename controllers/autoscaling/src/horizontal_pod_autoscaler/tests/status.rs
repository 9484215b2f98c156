//! The status that is written.

use kcm_framework::api::View as _;
use kcm_framework::api::views::HorizontalPodAutoscaler;
use serde_json::{Value, json};

use super::fixtures::now;
use super::requests::metric;
use crate::horizontal_pod_autoscaler::calculator::Proposal;
use crate::horizontal_pod_autoscaler::conditions::Conditions;
use crate::horizontal_pod_autoscaler::status::{Status, metric_status};

fn autoscaler(status: &Value) -> HorizontalPodAutoscaler {
    let object = json!({
        "metadata": { "namespace": "shop", "name": "web", "labels": { "a": "b" } },
        "spec": { "maxReplicas": 5, "later": "kept" }, "status": status,
    });
    HorizontalPodAutoscaler::decode(&object.to_string()).expect("it is an autoscaler")
}

#[test]
fn a_status_is_written_as_upstream_writes_it_and_unknown_fields_survive() {
    let autoscaler = autoscaler(&json!({ "currentReplicas": 1, "later": "kept" }));
    let mut status = Status::of(&autoscaler).unwrap();
    status.observed_generation = Some(7);
    status.desired_replicas = 3;
    status.last_scale_time = Some(now());
    status.current_metrics = vec![json!({ "type": "" })];
    status.conditions.set("AbleToScale", true, "SucceededRescale", "scaled", now());
    let written: Value = serde_json::from_str(status.written_to(&autoscaler).unwrap().as_str()).unwrap();
    let expected = json!({
        "metadata": { "namespace": "shop", "name": "web", "labels": { "a": "b" } },
        "spec": { "maxReplicas": 5, "later": "kept" },
        "status": {
            "observedGeneration": 7, "currentReplicas": 1, "desiredReplicas": 3, "lastScaleTime": "2026-01-01T12:00:00Z", "later": "kept",
            "currentMetrics": [{ "type": "" }],
            "conditions": [{
                "type": "AbleToScale", "status": "True", "reason": "SucceededRescale", "message": "scaled",
                "lastTransitionTime": "2026-01-01T12:00:00Z",
            }],
        },
    });
    assert_eq!(written, expected);
}

#[test]
fn an_observed_generation_counts_as_a_change_and_ends_with_its_gate() {
    let before = autoscaler(&json!({ "observedGeneration": 7, "currentReplicas": 1 }));
    let status = Status::of(&before).unwrap();
    assert_eq!(status.observed_generation, Some(7));
    let observed = |observed_generation| Status { observed_generation, ..status.clone() };
    assert!(!observed(Some(8)).is_same_as(&status) && !observed(None).is_same_as(&status));
    let written =
        |status: &Status| -> Value { serde_json::from_str(status.written_to(&before).unwrap().as_str()).unwrap() };
    assert_eq!(written(&observed(Some(0)))["status"]["observedGeneration"], 0);
    assert_eq!(written(&observed(None))["status"].get("observedGeneration"), None);
}

#[test]
fn a_status_is_the_same_where_only_the_notation_of_quantities_differs() {
    let of = |value: &str| {
        let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "current": { "averageValue": value } } });
        Status { current_metrics: vec![metric], ..Status::default() }
    };
    assert!(of("1000m").is_same_as(&of("1")) && of("1").is_same_as(&of("1000m")));
    assert!(!of("1000m").is_same_as(&of("1001m")));
    let null = autoscaler(&json!({ "currentMetrics": null, "conditions": null, "lastScaleTime": null }));
    assert!(Status::of(&null).unwrap().is_same_as(&Status::default()));
    assert!(Status::of(&autoscaler(&Value::Null)).unwrap().is_same_as(&Status::default()));
}

#[test]
fn each_metric_is_reported_with_its_identity_and_its_value() {
    let labels = json!({ "matchLabels": { "a": "b" } });
    let described = json!({ "apiVersion": "v1", "kind": "Service", "name": "web" });
    let value = json!({ "type": "Value", "value": "1" });
    let average = json!({ "type": "AverageValue", "averageValue": "1" });
    let share = json!({ "type": "Utilization", "averageUtilization": 50 });
    let proposal = |usage, utilization| Proposal { replicas: 1, usage, utilization };
    for (spec, proposal, expected) in [
        (
            json!({ "type": "Resource", "resource": { "name": "cpu", "target": share } }),
            proposal(250, Some(25)),
            json!({ "type": "Resource", "resource": { "name": "cpu", "current": { "averageUtilization": 25, "averageValue": "250m" } } }),
        ),
        (
            json!({ "type": "Resource", "resource": { "name": "memory", "target": average } }),
            proposal(2 * 1024 * 1024 * 1000, None),
            json!({ "type": "Resource", "resource": { "name": "memory", "current": { "averageValue": "2Mi" } } }),
        ),
        (
            json!({ "type": "ContainerResource", "containerResource": { "name": "cpu", "container": "main", "target": share } }),
            proposal(1000, Some(25)),
            json!({ "type": "ContainerResource", "containerResource": {
                "name": "cpu", "container": "main", "current": { "averageUtilization": 25, "averageValue": "1" },
            } }),
        ),
        (
            json!({ "type": "Pods", "pods": { "metric": { "name": "q", "selector": labels }, "target": average } }),
            proposal(1500, None),
            json!({ "type": "Pods", "pods": { "metric": { "name": "q", "selector": labels }, "current": { "averageValue": "1500m" } } }),
        ),
        (
            json!({ "type": "Object", "object": { "describedObject": described, "metric": { "name": "q" }, "target": value } }),
            proposal(1000, None),
            json!({ "type": "Object", "object": { "describedObject": described, "metric": { "name": "q" }, "current": { "value": "1" } } }),
        ),
        (
            json!({ "type": "Object", "object": { "describedObject": described, "metric": { "name": "q" }, "target": average } }),
            proposal(1000, None),
            json!({ "type": "Object", "object": { "describedObject": described, "metric": { "name": "q" }, "current": { "averageValue": "1" } } }),
        ),
        (
            json!({ "type": "External", "external": { "metric": { "name": "q" }, "target": value } }),
            proposal(1000, None),
            json!({ "type": "External", "external": { "metric": { "name": "q" }, "current": { "value": "1" } } }),
        ),
    ] {
        assert_eq!(metric_status(&metric(&spec), &spec, proposal), expected);
    }
}

#[test]
fn a_condition_keeps_its_place_and_its_time_until_its_status_changes() {
    let mut conditions = Conditions::default();
    let later = now() + super::fixtures::seconds(60);
    conditions.set("AbleToScale", true, "A", "a", now());
    conditions.set("ScalingActive", true, "B", "b", now());
    conditions.set("AbleToScale", true, "C", "c", later);
    let [able, _] = &conditions.0[..] else { panic!("there are two") };
    assert_eq!((&*able.reason, &*able.message, able.last_transition_time), ("C", "c", Some(now())));
    conditions.set("AbleToScale", false, "D", "d", later);
    assert_eq!(conditions.0[0].last_transition_time, Some(later));
    assert!(!conditions.is_true("AbleToScale") && conditions.is_true("ScalingActive") && !conditions.is_true("Other"));
    conditions.remove("AbleToScale");
    assert_eq!(conditions.0.len(), 1);
}

#[test]
fn usage_is_written_as_the_metrics_server_writes_it() {
    for (resource, usage, expected) in [
        ("memory", 1_000, "1"),
        ("memory", 1_000_000, "1k"),
        ("memory", 1_024_000, "1Ki"),
        ("memory", 1_024_000_000, "1000Ki"),
        ("cpu", 1, "1m"),
        ("cpu", 500, "500m"),
        ("example.com/lamp", 200, "200m"),
        ("example.com/lamp", 3_000, "3"),
    ] {
        let target = json!({ "type": "AverageValue", "averageValue": "1" });
        let spec = json!({ "type": "Resource", "resource": { "name": resource, "target": target } });
        let written = metric_status(&metric(&spec), &spec, Proposal { replicas: 1, usage, utilization: None });
        assert_eq!(written["resource"]["current"]["averageValue"], expected, "{usage} of {resource}");
    }
}
