//! The metrics of endpoint slices, which exist only with services and endpoints, have the names, types, labels, buckets
//! and stability of upstream's table.

use std::time::Duration;

use kcm_framework::Format;
use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::{EndpointsView, Service};
use serde_json::json;

use super::running_with;
use super::upstream_metrics::{scraped, table};

#[tokio::test(start_paused = true)]
async fn what_endpoint_slices_show_agrees_with_the_table() {
    let manager = running_with(&["endpointslice", "endpointslicemirroring"], &[]).await;
    let service = |name: &str, selector: serde_json::Value| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": "default" },
            "spec": { "selector": selector, "ports": [{ "port": 80 }], "trafficDistribution": "PreferClose" },
        })
    };
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": { "name": "mirrored", "namespace": "default" },
        "subsets": [{ "addresses": [{ "ip": "10.0.0.1" }], "ports": [{ "port": 80 }] }],
    });
    for service in [service("web", json!({ "app": "web" })), service("mirrored", json!(null))] {
        manager.sandbox.create(&Service::RESOURCE, service).expect("the service must be valid");
    }
    manager.sandbox.create(&EndpointsView::RESOURCE, endpoints).expect("the endpoints must be valid");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let page = String::from_utf8(manager.metrics.expose(Format::Text)).expect("it is text");
    let (ours, mut compared) = (scraped(&page), 0);
    for (name, theirs) in table() {
        if name.starts_with("endpoint_slice_") {
            assert_eq!(ours.get(name), Some(&theirs), "{name}");
            compared += 1;
        }
    }
    assert_eq!(compared, 18, "9 of endpoint slices, 9 of mirrored ones");
}
