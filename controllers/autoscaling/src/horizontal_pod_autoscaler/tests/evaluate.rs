//! What several metrics propose together, and the messages of those that fail.

use std::time::Duration;

use kcm_framework::api::Selector;
use serde_json::{Value, json};

use super::fixtures::{TestPod, pods, rules};
use super::requests::metric;
use crate::horizontal_pod_autoscaler::calculator::ObservedPod;
use crate::horizontal_pod_autoscaler::evaluate::{Answered, Evaluation, Measurement, Responses, Scaled, evaluate};
use crate::horizontal_pod_autoscaler::requests::{Api, Request, request_of};
use crate::horizontal_pod_autoscaler::responses::{Response, read};

fn external(name: &str, target: &Value) -> Value {
    json!({ "type": "External", "external": { "metric": { "name": name }, "target": target } })
}

fn value(target: &str) -> Value {
    json!({ "type": "Value", "value": target })
}

fn average(target: &str) -> Value {
    json!({ "type": "AverageValue", "averageValue": target })
}

/// Evaluates metrics for four replicas, with what their APIs return.
fn evaluated(specs: &[Value], response: impl Fn(&Request) -> Result<Response, String>) -> Evaluation {
    evaluated_for((4, 4), specs, response)
}

/// Evaluates metrics for so many replicas that are wanted, and so many that there are.
fn evaluated_for(
    (spec_replicas, status_replicas): (i32, i32),
    specs: &[Value],
    response: impl Fn(&Request) -> Result<Response, String>,
) -> Evaluation {
    let metrics: Vec<_> = specs.iter().map(metric).collect();
    let selector: Selector = "app=web".parse().unwrap();
    let services = |group: &str, kind: &str| (group.is_empty() && kind == "Service").then(|| "services".to_owned());
    let requests: Vec<_> = metrics.iter().map(|metric| request_of(metric, "shop", &selector, services)).collect();
    let answered = |request: &Request| Answered { response: response(request), took: Duration::from_secs(1) };
    let responses: Responses =
        requests.iter().filter_map(|it| it.as_ref().ok()).map(|it| (it.clone(), answered(it))).collect();
    let pods = pods(4, 1000);
    let pods: Vec<ObservedPod<'_>> = pods.iter().map(TestPod::observed).collect();
    let (namespace, rules) = ("shop", rules());
    let scaled = Scaled { namespace, spec_replicas, status_replicas, pods: &pods, rules, pod_level: true };
    let measurements: Vec<_> = metrics
        .iter()
        .zip(specs)
        .zip(&requests)
        .map(|((metric, spec), request)| Measurement { metric, spec, request })
        .collect();
    evaluate(&measurements, &responses, &scaled)
}

/// The value of an external metric by its name, `fail` excepted.
fn by_name(request: &Request) -> Result<Response, String> {
    let Request::External { metric, .. } = request else { panic!("{request:?}") };
    metric.parse().map(|value: i64| Response::Values(vec![value * 1000])).map_err(|_| "broken".to_owned())
}

#[test]
fn the_highest_proposal_counts_and_a_failure_keeps_from_scaling_down() {
    for (name, values, expected, failures) in [
        ("one", &["8"][..], Some(8), 0),
        ("the highest", &["8", "12", "2"], Some(12), 0),
        ("down, where all are below", &["1", "2"], Some(2), 0),
        ("up beside a failure", &["8", "fail"], Some(8), 1),
        ("as many beside a failure", &["fail", "4"], Some(4), 1),
        ("not down beside a failure", &["2", "fail"], None, 1),
        ("nothing but failures", &["fail", "fail"], None, 2),
        ("to zero", &["0", "0"], Some(0), 0),
    ] {
        let specs: Vec<Value> = values.iter().map(|it| external(it, &average("1"))).collect();
        let found = evaluated(&specs, by_name);
        assert_eq!(found.proposed.as_ref().map(|(replicas, _)| *replicas), expected, "{name}");
        assert_eq!((found.failures.len(), found.statuses.len()), (failures, values.len()), "{name}");
        let unknown = found.statuses.iter().filter(|status| **status == json!({ "type": "" })).count();
        assert_eq!(unknown, failures, "{name}");
    }
}

#[test]
fn a_value_per_pod_is_divided_by_the_replicas_that_there_are_and_others_by_those_that_are_wanted() {
    for (name, spec, expected) in [
        // 8 / 8 pods: within the tolerance of 1 per pod, as many as there are.
        ("per pod", external("8", &average("1")), 8),
        // 8 of 8: within the tolerance, as many as are wanted.
        ("value", external("8", &value("8")), 4),
    ] {
        let found = evaluated_for((4, 8), &[spec], by_name).proposed.map(|(replicas, _)| replicas);
        assert_eq!(found, Some(expected), "{name}");
    }
}

#[test]
fn from_zero_a_failed_metric_keeps_no_other_from_scaling() {
    for (other, expected) in [("3", 3), ("0", 0)] {
        let specs = [external(other, &average("1")), external("fail", &average("1"))];
        let found = evaluated_for((0, 0), &specs, by_name);
        assert_eq!((found.proposed.map(|(replicas, _)| replicas), found.failures.len()), (Some(expected), 1));
    }
}

#[test]
fn a_metric_of_a_container_measures_no_other() {
    let pod = |at| {
        let usage = |name: &str, cpu: &str| json!({ "name": name, "usage": { "cpu": cpu } });
        json!({ "metadata": { "name": format!("pod-{at}") }, "containers": [usage("main", "500m"), usage("side", "3")] })
    };
    let body = json!({ "items": (0..4).map(pod).collect::<Vec<_>>() }).to_string();
    let of = |container: &str| {
        json!({ "type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": container, "target": average("500m"),
        } })
    };
    for (container, expected) in [("main", 4), ("side", 24)] {
        let found = evaluated(&[of(container)], |request| read(request, body.as_bytes()));
        assert_eq!(found.proposed.map(|(replicas, _)| replicas), Some(expected), "{container}");
    }
}

#[test]
fn proposals_are_named_as_upstream_names_them() {
    let service = json!({ "apiVersion": "v1", "kind": "Service", "name": "web" });
    let share = json!({ "type": "Utilization", "averageUtilization": 50 });
    let items = json!([{ "metadata": { "name": "pod-0" }, "containers": [{ "name": "main", "usage": { "cpu": "1" } }],
        "describedObject": { "name": "pod-0" }, "value": "100" }]);
    let body = json!({ "items": items }).to_string();
    for (spec, name) in [
        (
            json!({ "type": "Resource", "resource": { "name": "cpu", "target": share } }),
            "cpu resource utilization (percentage of request)",
        ),
        (json!({ "type": "Resource", "resource": { "name": "cpu", "target": average("1") } }), "cpu resource"),
        (
            json!({ "type": "ContainerResource", "containerResource": { "name": "cpu", "container": "main", "target": share } }),
            "cpu container resource utilization (percentage of request)",
        ),
        (json!({ "type": "Pods", "pods": { "metric": { "name": "q" }, "target": average("1") } }), "pods metric q"),
        (
            json!({ "type": "Object", "object": { "describedObject": service, "metric": { "name": "q" }, "target": value("1") } }),
            "Service metric q",
        ),
        (
            json!({ "type": "Object", "object": { "describedObject": service, "metric": { "name": "q" }, "target": average("1") } }),
            "external metric q(nil)",
        ),
        (external("q", &value("1")), "external metric q(nil)"),
    ] {
        let found = evaluated(&[spec], |request| read(request, body.as_bytes()));
        assert_eq!(found.proposed.map(|(_, name)| name).as_deref(), Some(name), "{:?}", found.failures);
    }
}

#[test]
fn failures_have_upstreams_reasons_and_messages() {
    let service = json!({ "apiVersion": "v1", "kind": "Service", "name": "web" });
    let share = json!({ "type": "Utilization", "averageUtilization": 50 });
    let fetch = "no metrics returned from somewhere";
    let broken = json!({ "name": "q", "selector": { "matchExpressions": [{ "key": "a", "operator": "Is" }] } });
    for (spec, reason, message, error) in [
        (
            json!({ "type": "Resource", "resource": { "name": "cpu", "target": share } }),
            "FailedGetResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from somewhere",
            "failed to get cpu resource metric value: failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from somewhere",
        ),
        (
            json!({ "type": "Resource", "resource": { "name": "memory", "target": average("1") } }),
            "FailedGetResourceMetric",
            "failed to get memory usage: unable to get metrics for resource memory: no metrics returned from somewhere",
            "failed to get memory resource metric value: failed to get memory usage: unable to get metrics for resource memory: no metrics returned from somewhere",
        ),
        (
            json!({ "type": "ContainerResource", "containerResource": { "name": "cpu", "container": "main", "target": share } }),
            "FailedGetContainerResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from somewhere",
            "failed to get main container metric value: failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from somewhere",
        ),
        (
            json!({ "type": "Pods", "pods": { "metric": { "name": "q" }, "target": average("1") } }),
            "FailedGetPodsMetric",
            "unable to get metric q: no metrics returned from somewhere",
            "failed to get pods metric value: unable to get metric q: no metrics returned from somewhere",
        ),
        (
            json!({ "type": "Object", "object": { "describedObject": service, "metric": { "name": "q" }, "target": value("1") } }),
            "FailedGetObjectMetric",
            "unable to get metric q on Service shop/web: no metrics returned from somewhere",
            "failed to get object metric value: unable to get metric q on Service shop/web: no metrics returned from somewhere",
        ),
        (
            json!({ "type": "Object", "object": { "describedObject": service, "metric": { "name": "q" }, "target": average("1") } }),
            "FailedGetObjectMetric",
            "unable to get metric q on Service shop/web: no metrics returned from somewhere",
            "failed to get object metric value: failed to get q object metric: unable to get metric q on Service shop/web: no metrics returned from somewhere",
        ),
        (
            json!({ "type": "Object", "object": { "describedObject": service, "metric": broken, "target": average("1") } }),
            "FailedGetObjectMetric",
            "\"Is\" is not a valid label selector operator",
            "failed to get object metric value: \"Is\" is not a valid label selector operator",
        ),
        (
            external("q", &value("1")),
            "FailedGetExternalMetric",
            "unable to get external metric shop/q/nil: no metrics returned from somewhere",
            "failed to get q external metric value: failed to get external metric q: unable to get external metric shop/q/nil: no metrics returned from somewhere",
        ),
        (
            external("q", &average("1")),
            "FailedGetExternalMetric",
            "unable to get external metric shop/q/nil: no metrics returned from somewhere",
            "failed to get q external metric value: failed to get q external metric: unable to get external metric shop/q/nil: no metrics returned from somewhere",
        ),
        (
            json!({ "type": "Mood" }),
            "InvalidMetricSourceType",
            "unknown metric source type \"Mood\"",
            "unknown metric source type \"Mood\"",
        ),
    ] {
        let found = evaluated(std::slice::from_ref(&spec), |_| Err(fetch.to_owned()));
        let [failure] = &found.failures[..] else { panic!("{found:?}") };
        assert_eq!((failure.reason, &*failure.message, &*failure.error), (reason, message, error));
        assert_eq!(failure.is_spec, spec["type"] == "Mood");
        let all = format!("invalid metrics (1 invalid out of 1), first error is: {error}");
        assert_eq!(found.error(), Some(all));
    }
}

#[test]
fn a_failed_calculation_is_not_that_of_an_api() {
    let share = json!({ "type": "Utilization", "averageUtilization": 50 });
    let spec = json!({ "type": "Resource", "resource": { "name": "memory", "target": share } });
    let body = json!({ "items": [{ "metadata": { "name": "pod-0" }, "containers": [{ "name": "main", "usage": { "memory": "1" } }] }] });
    let found = evaluated(&[spec], |request| read(request, body.to_string().as_bytes()));
    let message = "failed to get memory utilization: missing request for memory in container main of Pod pod-0";
    assert_eq!(found.failures[0].message, message);
}

#[test]
fn metrics_of_one_resource_take_one_request() {
    let target = average("1");
    let of = |name: &str| json!({ "type": "Resource", "resource": { "name": name, "target": target } });
    let container = json!({ "type": "ContainerResource", "containerResource": { "name": "cpu", "container": "main", "target": target } });
    let requested = std::cell::Cell::new(0);
    let found = evaluated(&[of("cpu"), of("memory"), container], |request| {
        assert_eq!(request.api(), Api::Resource);
        requested.set(requested.get() + 1);
        Err("x".to_owned())
    });
    assert_eq!(found.failures.len(), 3);
    let distinct: std::collections::BTreeSet<_> = found.computed.iter().map(|it| &it.type_).collect();
    assert_eq!(distinct.len(), 2, "each is counted by its type");
}
