mod apply;
mod event_mapping;
mod plan;
mod simulation;
mod status;

use std::sync::Arc;

use kcm_framework::api::views::{ClaimDevices, Pod, PodClaims, PodDisruption, ResourceClaim};
use kcm_framework::api::{Need, Needs};
use serde_json::{Value, json};

use crate::shared::{DeviceTaintRule, ResourceSlice};
use crate::tests::view;

const START: &str = "2026-01-02T12:00:00Z";

fn needs() -> Needs {
    [Need::part::<PodClaims>(), Need::part::<PodDisruption>(), Need::part::<ClaimDevices>()].into_iter().collect()
}

fn pod_view(pod: &Value) -> Arc<Pod> {
    view(pod, &needs())
}

fn claim_view(claim: &Value) -> Arc<ResourceClaim> {
    view(claim, &needs())
}

fn slice_view(slice: &Value) -> Arc<ResourceSlice> {
    view(slice, &needs())
}

fn rule_view(rule: &Value) -> Arc<DeviceTaintRule> {
    view(rule, &needs())
}

/// A taint since the start.
fn taint(key: &str, effect: &str) -> Value {
    json!({ "key": key, "effect": effect, "timeAdded": START })
}

/// A slice of the pool `a` of the driver `gpu.example.com`.
fn slice(name: &str, generation: i64, devices: &Value) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "driver": "gpu.example.com",
            "pool": { "name": "a", "generation": generation, "resourceSliceCount": 1 },
            "devices": devices,
        },
    })
}

/// A rule with its uid and generation.
fn rule(name: &str, selector: &Value, taint: &Value) -> Value {
    json!({
        "metadata": { "name": name, "uid": name, "generation": 1 },
        "spec": { "deviceSelector": selector, "taint": taint },
    })
}
