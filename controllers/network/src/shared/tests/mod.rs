//! Tables of what is shared.

mod batching;
mod port_order;
mod ports;
mod services;
pub(crate) mod services_of_pods;
mod trigger_time;

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::{Pod, Service};
use kcm_framework::api::{Need, Needs, PartReader, views::PodAddresses};
use serde_json::{Value, json};

/// Reads the addresses of pods, of which all parts are decoded here.
pub(crate) fn addresses() -> PartReader<PodAddresses> {
    let needs: Needs = [Need::part::<PodAddresses>()].into_iter().collect();
    needs.reader().unwrap()
}

/// A pod `name` in the namespace `shop` with these labels, whose fields `change` adds.
pub(crate) fn pod(name: &str, labels: &Value, change: &Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": { "namespace": "shop", "name": name, "uid": format!("uid-{name}"), "labels": labels },
        "spec": { "nodeName": "node-a" },
        "status": { "phase": "Running", "podIPs": [{ "ip": "10.0.0.1" }] },
    });
    merge(&mut pod, change);
    Arc::new(Pod::decode(&pod.to_string()).unwrap())
}

/// A service `name` in the namespace `shop` with this spec.
pub(crate) fn service(name: &str, spec: &Value) -> Arc<Service> {
    let created = "2026-01-02T12:00:00Z";
    let metadata =
        json!({ "namespace": "shop", "name": name, "uid": format!("uid-{name}"), "creationTimestamp": created });
    let service = json!({ "metadata": metadata, "spec": spec });
    Arc::new(Service::decode(&service.to_string()).unwrap())
}

/// Merges `change` into `object`, as a JSON merge patch.
pub(crate) fn merge(object: &mut Value, change: &Value) {
    match (object, change) {
        (Value::Object(object), Value::Object(change)) => {
            for (name, value) in change {
                merge(object.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (object, change) => *object = change.clone(),
    }
}
