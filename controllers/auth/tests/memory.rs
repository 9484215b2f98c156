//! Bytes per cached object, counted by the allocator.
//!
//! The views are compiled into this test, as they are no part of the API of the crate.

#[allow(dead_code, unreachable_pub, reason = "only the memory of the view is looked at here")]
#[path = "../src/shared/account.rs"]
mod account;
#[allow(dead_code, unreachable_pub, reason = "only the memory of the view is looked at here")]
#[path = "../src/shared/bootstrap_token.rs"]
mod bootstrap_token;
#[allow(dead_code, unreachable_pub, reason = "the view reads its expiration with it")]
#[path = "../src/shared/go_time.rs"]
mod go_time;
#[allow(dead_code, unreachable_pub, reason = "only the memory of the view is looked at here")]
#[path = "../src/root_ca_certificate_publisher/plan.rs"]
mod plan;
#[allow(dead_code, unreachable_pub, reason = "only the memory of the view is looked at here")]
#[path = "../src/serviceaccount_token/secret.rs"]
mod secret;
#[allow(dead_code, unreachable_pub, reason = "only the memory of the view is looked at here")]
#[path = "../src/clusterrole_aggregation/view.rs"]
mod view;

use std::alloc::System;
use std::sync::Arc;

use kcm_framework::api::{DecodeContext, Needs, View};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The name that a view looks for.
const CONFIG_MAP: &str = "kube-root-ca.crt";

/// Bytes and allocations for each of 2,000 objects that differ in namespace and uid, as a cache holds them.
fn cost_of<V: View>(object: &Value) -> (usize, usize) {
    const OBJECTS: usize = 2000;
    let named = |number: usize| {
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(format!("shop-{number:05}"));
        object["metadata"]["uid"] = json!(format!("{number:08}-2222-4333-8444-555555555555"));
        object["metadata"]["resourceVersion"] = json!(format!("{number:05}"));
        object.to_string()
    };
    let texts: Vec<String> = (0..OBJECTS).map(named).collect();
    let context = Arc::new(DecodeContext::new::<V>(Arc::default(), &Needs::default()));
    let mut cache = Vec::with_capacity(OBJECTS);
    let region = Region::new(ALLOCATOR);
    context.scope(|| cache.extend(texts.iter().map(|json| Arc::new(V::decode(json).expect("it is an object")))));
    let held = region.change();
    ((held.bytes_allocated - held.bytes_deallocated) / OBJECTS, (held.allocations - held.deallocations) / OBJECTS)
}

// One test, since the allocator counts for the whole process.
#[test]
fn cached_objects_are_small() {
    // As large as those of clusters.
    let (ca, token) = ("Q0FDQUNB".repeat(180), "VE9LRU5U".repeat(140));
    let account = json!({ "metadata": { "name": "default" } });
    let secret = json!({
        "metadata": {
            "name": "robot-token-x2k8p",
            "annotations": {
                "kubernetes.io/service-account.name": "robot",
                "kubernetes.io/service-account.uid": "0f0e7c58-4d0e-4c5a-9c60-1b9a9b5f4d11",
            },
        },
        "type": "kubernetes.io/service-account-token",
        "data": { "ca.crt": ca, "namespace": "c2hvcA==", "token": token },
    });
    let map = json!({
        "metadata": { "name": CONFIG_MAP, "annotations": { "kubernetes.io/description": "Contains a CA bundle" } },
        "data": { "ca.crt": ca },
    });
    let bootstrap = json!({
        "metadata": { "name": "bootstrap-token-abc123" },
        "type": "bootstrap.kubernetes.io/token",
        "data": {
            "token-id": "YWJjMTIz", "token-secret": "MDEyMzQ1Njc4OWFiY2RlZg==", "usage-bootstrap-signing": "dHJ1ZQ==",
            "expiration": "MjAyNi0wMS0wMlQwMzowNDowNVo=", "description": "VGhlIGRlZmF1bHQgYm9vdHN0cmFwIHRva2Vu",
        },
    });
    let one = json!({ "apiGroups": ["apps"], "resources": ["deployments", "replicasets"], "verbs": ["get", "list"] });
    let role = json!({ "metadata": { "name": "websites" }, "rules": [one, one, one] });
    // Within a tenth of what is counted, so that a larger object is a deliberate change.
    for (kind, (bytes, allocations), (most_bytes, most_allocations)) in [
        ("service account", cost_of::<account::ServiceAccount>(&account), (360, 4)),
        ("secret", cost_of::<secret::TokenSecret>(&secret), (450, 5)),
        ("bootstrap token", cost_of::<bootstrap_token::BootstrapToken>(&bootstrap), (480, 8)),
        ("config map, with its JSON", cost_of::<plan::ConfigMap>(&map), (2650, 7)),
        ("cluster role of three rules", cost_of::<view::ClusterRole>(&role), (1540, 14)),
    ] {
        let cost = format!("{bytes} bytes in {allocations} allocations per {kind}");
        assert!(bytes <= most_bytes && allocations <= most_allocations, "{cost}");
    }
}
