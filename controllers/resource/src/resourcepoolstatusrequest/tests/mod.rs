mod apply;
mod expiry;
mod status;
mod views;

use std::sync::Arc;

use kcm_framework::api::views::ClaimDevices;
use kcm_framework::api::{Need, Needs, View as _};
use serde_json::{Value, json};

use super::views::{PoolStatusRequest, PublishedSlice};
use crate::tests::view;

fn needs() -> Needs {
    [Need::part::<ClaimDevices>()].into_iter().collect()
}

fn request_view(request: &Value) -> Arc<PoolStatusRequest> {
    view(request, &needs())
}

fn slices(slices: &[Value]) -> Vec<PublishedSlice> {
    slices
        .iter()
        .map(|slice| PublishedSlice::decode(&slice.to_string()).expect("the fixture must be a slice"))
        .collect()
}

/// A slice of the driver `gpu.example.com`.
fn slice(name: &str, pool: &str, generation: i64, count: i64, devices: &Value) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "driver": "gpu.example.com", "allNodes": true, "devices": devices,
            "pool": { "name": pool, "generation": generation, "resourceSliceCount": count },
        },
    })
}

/// A request for the driver `gpu.example.com`.
fn request(spec: &Value) -> Value {
    let mut request = json!({
        "apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourcePoolStatusRequest",
        "metadata": { "name": "r" }, "spec": { "driver": "gpu.example.com" },
    });
    for (field, value) in spec.as_object().expect("the fixture must be an object") {
        request["spec"][field] = value.clone();
    }
    request
}
