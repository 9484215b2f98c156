mod apply;
mod event_mapping;
mod plan;
mod range;
mod simulation;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::View as _;
use kcm_framework::api::views::ServiceCidr;
use serde_json::{Value, json};

/// The time at which every test starts.
fn now() -> Timestamp {
    "2026-01-02T12:00:00Z".parse().expect("must be a time")
}

fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

/// A service CIDR with the finalizer.
fn cidr_json(name: &str, ranges: &[&str]) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": { "name": name, "finalizers": ["networking.k8s.io/service-cidr-finalizer"] },
        "spec": { "cidrs": ranges },
    })
}

fn view_of(cidr: &Value) -> Arc<ServiceCidr> {
    Arc::new(ServiceCidr::decode(&cidr.to_string()).unwrap())
}

fn cidr(name: &str, ranges: &[&str]) -> Arc<ServiceCidr> {
    view_of(&cidr_json(name, ranges))
}

/// An address as the API server makes it for a service.
fn address_json(address: &str) -> Value {
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": { "name": address, "labels": {
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io", "ipaddress.kubernetes.io/ip-family": family,
        } },
        "spec": { "parentRef": { "resource": "services", "namespace": "default", "name": "web" } },
    })
}
