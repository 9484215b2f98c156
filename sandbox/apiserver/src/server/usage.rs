//! The API `metrics.k8s.io`: what running pods and their nodes use. Pure.
//!
//! There are no programs to measure. Each container uses what the annotations [`USAGE_CPU`] and [`USAGE_MEMORY`] of its pod
//! say, as kwok's simulation does by default, and next to nothing without them. A value that is no quantity is served as it
//! stands.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::{ResourceQuantity, Selector, time};
use serde_json::{Value, json};

use crate::json;
use crate::kinds::{NODES, PODS};
use crate::request::{Query, Target, Verb};
use crate::server::Server;
use crate::status::Status;

/// The annotation of a pod with the CPU that each of its containers uses.
pub const USAGE_CPU: &str = "kwok.x-k8s.io/usage-cpu";
/// The annotation of a pod with the memory that each of its containers uses.
pub const USAGE_MEMORY: &str = "kwok.x-k8s.io/usage-memory";

const VERSION: &str = "metrics.k8s.io/v1beta1";
const WINDOW: &str = "15s";

/// Returns what a get or a list of `metrics.k8s.io` returns.
pub(crate) fn read(server: &Server, target: &Target, query: &Query, now: Timestamp) -> Result<Value, Status> {
    let selector = query.get("labelSelector").unwrap_or_default().parse::<Selector>();
    let selector = selector.map_err(|error| Status::bad_request(error.to_string()))?;
    let of_nodes = target.resource.plural == "nodes";
    let running = |pod: &Value| json::text(pod, &["status", "phase"]) == Some("Running");
    let namespace = target.namespace.as_deref().filter(|_| !of_nodes);
    let pods = server
        .store
        .list(const { &PODS }, namespace)
        .map(|(_, pod)| pod.value())
        .filter(|pod: &Arc<Value>| running(pod));
    let measured: Vec<Value> = if of_nodes {
        let pods: Vec<_> = pods.collect();
        let nodes = server.store.list(const { &NODES }, None);
        let nodes = nodes.map(|(_, node)| node.value()).filter(|node| selects(&selector, node));
        nodes.map(|node| of_node(&node, &pods, now)).collect()
    } else {
        pods.filter(|pod| selects(&selector, pod)).map(|pod| of_pod(&pod, now)).collect()
    };
    if target.verb == Verb::List {
        let kind = format!("{}List", target.resource.kind);
        return Ok(json!({ "kind": kind, "apiVersion": VERSION, "metadata": {}, "items": measured }));
    }
    let name = target.name.as_deref().unwrap_or_default();
    let found = measured.into_iter().find(|object| json::name(object) == name);
    found.ok_or_else(|| Status::not_found(&target.resource, name))
}

fn selects(selector: &Selector, object: &Value) -> bool {
    selector.matches(&json::labels_of(object))
}

fn metadata(object: &Value, now: Timestamp) -> Value {
    let mut metadata = json!({ "name": json::name(object), "creationTimestamp": time::format_seconds(now) });
    for field in ["namespace", "labels"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    metadata
}

/// Returns the usage of each container of a pod.
fn usage(pod: &Value) -> [(&'static str, String); 2] {
    let annotated = |name, otherwise: &str| {
        let value = pod["metadata"]["annotations"].get(name).and_then(Value::as_str);
        value.unwrap_or(otherwise).to_owned()
    };
    [("cpu", annotated(USAGE_CPU, "1m")), ("memory", annotated(USAGE_MEMORY, "1Mi"))]
}

fn of_pod(pod: &Value, now: Timestamp) -> Value {
    let usage: serde_json::Map<String, Value> =
        usage(pod).into_iter().map(|(resource, quantity)| (resource.to_owned(), json!(quantity))).collect();
    let containers = json::list(pod, &["spec", "containers"]);
    let containers: Vec<Value> =
        containers.iter().map(|container| json!({ "name": container["name"], "usage": usage })).collect();
    json!({
        "kind": "PodMetrics", "apiVersion": VERSION, "metadata": metadata(pod, now),
        "timestamp": time::format_seconds(now), "window": WINDOW, "containers": containers,
    })
}

fn of_node(node: &Value, pods: &[Arc<Value>], now: Timestamp) -> Value {
    let mut total = [("cpu", ResourceQuantity::default()), ("memory", ResourceQuantity::default())];
    let name = json::name(node);
    for pod in pods.iter().filter(|pod| json::text(pod, &["spec", "nodeName"]) == Some(name)) {
        for _ in json::list(pod, &["spec", "containers"]) {
            for ((_, sum), (_, quantity)) in total.iter_mut().zip(usage(pod)) {
                if let Ok(quantity) = quantity.parse() {
                    *sum += quantity;
                }
            }
        }
    }
    let usage: serde_json::Map<String, Value> =
        total.into_iter().map(|(resource, sum)| (resource.to_owned(), json!(sum.to_string()))).collect();
    json!({
        "kind": "NodeMetrics", "apiVersion": VERSION, "metadata": metadata(node, now),
        "timestamp": time::format_seconds(now), "window": WINDOW, "usage": usage,
    })
}
