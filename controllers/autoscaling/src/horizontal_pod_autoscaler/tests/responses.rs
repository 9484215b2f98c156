//! What metrics APIs serve, lies included.

use serde_json::{Value, json};

use super::fixtures::{now, seconds};
use crate::horizontal_pod_autoscaler::calculator::Sample;
use crate::horizontal_pod_autoscaler::requests::Request;
use crate::horizontal_pod_autoscaler::responses::{Response, read, samples};

fn usage() -> Request {
    Request::Usage { namespace: "shop".into(), selector: String::new() }
}

fn of_pods() -> Request {
    let (namespace, metric) = ("shop".into(), "q".into());
    Request::OfPods { namespace, selector: String::new(), metric, metric_selector: String::new() }
}

fn of_object() -> Request {
    let (namespace, name, metric) = ("shop".into(), "web".into(), "q".into());
    Request::OfObject { namespace, resource: None, name, metric, metric_selector: String::new() }
}

fn external() -> Request {
    Request::External { namespace: "shop".into(), metric: "q".into(), metric_selector: String::new() }
}

fn items(items: &Value) -> Vec<u8> {
    json!({ "items": items }).to_string().into_bytes()
}

fn pod(name: &str, containers: &Value) -> Value {
    json!({ "metadata": { "name": name }, "timestamp": "2026-01-01T12:00:00Z", "window": "1m0s", "containers": containers })
}

fn values(request: &Request, body: &[u8], resource: &str, container: Option<&str>) -> Vec<(String, i64)> {
    let Ok(Response::Usage(pods)) = read(request, body) else { panic!("it is the usage of pods") };
    samples(&pods, resource, container).iter().map(|(name, sample)| (name.to_string(), sample.value)).collect()
}

#[test]
fn the_usage_of_a_pod_is_that_of_its_containers_or_of_one() {
    let body = items(&json!([
        pod(
            "a",
            &json!([{ "name": "main", "usage": { "cpu": "250m", "memory": "1Mi" } }, { "name": "side", "usage": { "cpu": "1u" } }])
        ),
        pod("b", &json!([{ "name": "main", "usage": { "memory": "1Ki" } }])),
        pod("c", &json!([])),
    ]));
    let a = |value| vec![("a".to_owned(), value)];
    assert_eq!(values(&usage(), &body, "cpu", None), a(251), "rounded up; b has no CPU, c no container");
    assert_eq!(values(&usage(), &body, "cpu", Some("side")), a(1));
    assert_eq!(values(&usage(), &body, "cpu", Some("other")), vec![]);
    assert_eq!(values(&usage(), &body, "memory", None), vec![("b".to_owned(), 1_024_000)], "a container of a has none");
}

#[test]
fn what_is_no_quantity_counts_as_missing_and_what_is_no_time_as_long_ago() {
    let lying = |usage: &str| pod("lying", &json!([{ "name": "main", "usage": { "cpu": usage } }]));
    let honest = pod("honest", &json!([{ "name": "main", "usage": { "cpu": "1" } }]));
    for (name, lie, expected) in [
        ("not a number", lying("NaN"), None),
        ("infinite", lying("+Inf"), None),
        ("less than nothing", lying("-5"), Some(-5_000)),
        ("more than 64 bits hold", lying("99999999999999999999"), Some(i64::MAX)),
        ("less than a thousandth", lying("1n"), Some(1)),
    ] {
        let found = values(&usage(), &items(&json!([lie, honest])), "cpu", None);
        let lying = found.iter().find(|(name, _)| name == "lying").map(|(_, value)| *value);
        assert_eq!(lying, expected, "{name}");
        assert!(found.contains(&("honest".to_owned(), 1_000)), "{name}");
    }
    for (timestamp, window, expected) in [
        (json!("2026-01-01T12:00:00Z"), json!("30s"), (Some(now()), seconds(30))),
        (json!("2999-01-01T00:00:00Z"), json!("1m0s"), ("2999-01-01T00:00:00Z".parse().ok(), seconds(60))),
        (json!("yesterday"), json!("long"), (None, seconds(0))),
        (Value::Null, json!(5), (None, seconds(0))),
    ] {
        let mut pod = pod("a", &json!([{ "name": "main", "usage": { "cpu": "1" } }]));
        (pod["timestamp"], pod["window"]) = (timestamp, window);
        let Ok(Response::Usage(pods)) = read(&usage(), &items(&json!([pod]))) else {
            panic!("it is the usage of pods")
        };
        let Sample { timestamp, window, .. } = samples(&pods, "cpu", None)["a"];
        assert_eq!((timestamp, window), expected);
    }
}

#[test]
fn custom_metrics_are_read_in_both_versions() {
    let item = |name: &str, value: Value| json!({ "describedObject": { "name": name }, "timestamp": "2026-01-01T12:00:00Z", "value": value });
    let mut with_window = item("a", json!("1500m"));
    with_window["windowSeconds"] = json!(30);
    let mut old = item("c", json!("2"));
    old["window"] = json!(10);
    let body = items(&json!([with_window, item("b", json!(7)), old, item("d", json!("NaN"))]));
    let Ok(Response::Pods(samples)) = read(&of_pods(), &body) else { panic!("they are samples") };
    let found: Vec<_> =
        samples.iter().map(|(name, sample)| (name.to_string(), sample.value, sample.window.as_secs())).collect();
    assert_eq!(found, [("a".to_owned(), 1500, 30), ("b".to_owned(), 7000, 60), ("c".to_owned(), 2000, 10)]);
    assert_eq!(read(&of_object(), &items(&json!([item("web", json!("3"))]))), Ok(Response::Value(3000)));
    let external = items(&json!([{ "value": "1" }, { "value": "2500m" }]));
    assert_eq!(read(&self::external(), &external), Ok(Response::Values(vec![1000, 2500])));
}

#[test]
fn an_empty_response_and_one_that_cannot_be_read_are_errors() {
    for (request, body, message) in [
        (usage(), items(&json!([])), "no metrics returned from resource metrics API"),
        (of_pods(), items(&Value::Null), "no metrics returned from custom metrics API"),
        (external(), items(&json!([])), "no metrics returned from external metrics API"),
        (
            of_object(),
            items(&json!([])),
            "unable to fetch metrics from custom metrics API: the custom metrics API server returned 0 results when we asked for exactly one",
        ),
        (
            of_object(),
            items(&json!([{ "value": "NaN" }])),
            "unable to fetch metrics from custom metrics API: the value \"NaN\" is no quantity",
        ),
        (
            external(),
            items(&json!([{ "value": "1" }, {}])),
            "unable to fetch metrics from external metrics API: the value null is no quantity",
        ),
    ] {
        assert_eq!(read(&request, &body), Err(message.to_owned()));
    }
    for body in ["", "[]", "null", "{\"items\":7}", "{\"items\":[", "\u{0}"] {
        assert!(read(&usage(), body.as_bytes()).is_err(), "{body}");
    }
    // Items of any form.
    let odd = items(&json!([null, 7, "a", {}, { "metadata": {} }, { "metadata": { "name": 7 } }]));
    assert_eq!(read(&usage(), &odd), Ok(Response::Usage(vec![])));
}

#[test]
fn a_value_of_zero_is_a_sample() {
    let body = items(&json!([pod("a", &json!([{ "name": "main", "usage": { "cpu": "0" } }]))]));
    assert_eq!(values(&usage(), &body, "cpu", None), [("a".to_owned(), 0)]);
    let body = items(&json!([{ "describedObject": { "name": "a" }, "value": "0" }]));
    let Ok(Response::Pods(samples)) = read(&of_pods(), &body) else { panic!("they are samples") };
    assert_eq!(samples["a"].value, 0);
    assert_eq!(read(&of_object(), &body), Ok(Response::Value(0)));
    assert_eq!(read(&external(), &body), Ok(Response::Values(vec![0])));
}
