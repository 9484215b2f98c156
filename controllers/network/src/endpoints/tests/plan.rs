//! When endpoints are written, and what.

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::Service;
use serde_json::{Value, json};

use super::super::order::pack;
use super::super::plan::{Desired, Existing, Plan, plan};
use super::{address, port, ready};
use crate::shared::subsets::{Address, Subset};

fn service(labels: &Value, cluster_ip: &str) -> Arc<Service> {
    let metadata = json!({ "namespace": "shop", "name": "web", "labels": labels });
    let spec = json!({ "selector": { "app": "web" }, "clusterIP": cluster_ip });
    Arc::new(Service::decode(&json!({ "metadata": metadata, "spec": spec }).to_string()).unwrap())
}

/// Two ports that the same address has, as upstream orders them.
fn subsets() -> Vec<Subset> {
    let two = [address("10.0.0.1", "web-a"), address("10.0.0.2", "web-b")];
    pack(vec![ready(&two, &[port("a", 80), port("c", 80)]), ready(&two[..1], &[port("b", 80)])])
}

fn many(count: usize) -> Vec<Subset> {
    let addresses: Vec<Address> =
        (0..count).map(|number| address(&format!("{number:05}"), &number.to_string())).collect();
    vec![ready(&addresses, &[port("http", 80)])]
}

#[test]
fn endpoints_are_written_where_they_differ_after_repacking() {
    let managed = |more: Value| {
        let mut labels = json!({ "team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller" });
        crate::shared::tests::merge(&mut labels, &more);
        labels
    };
    let mut versioned = subsets();
    for address in versioned.iter_mut().flat_map(|subset| &mut subset.addresses) {
        address.target_ref.as_mut().unwrap().resource_version = "7".to_owned();
    }
    let mut reversed: Vec<Subset> = subsets().into_iter().rev().collect();
    for subset in &mut reversed {
        subset.ports.reverse();
        subset.addresses.reverse();
    }
    let split: Vec<Subset> = subsets()
        .into_iter()
        .flat_map(|subset| subset.ports.clone().into_iter().map(move |port| ready(&subset.addresses, &[port])))
        .collect();
    let mut other_node = subsets();
    other_node[0].addresses[0].node_name = Some("node-b".to_owned());
    let mut other_port = subsets();
    other_port[0].ports[0].port = 81;
    let mut unready = subsets();
    unready[0].not_ready_addresses = std::mem::take(&mut unready[0].addresses);
    let truncated =
        || many(1001).into_iter().map(|subset| ready(&subset.addresses[..1000], &subset.ports)).collect::<Vec<_>>();
    let full = || many(1000);
    let truncation = Some("truncated");
    for (name, labels, over_capacity, existing, desired, is_kept) in [
        ("equal", managed(json!({})), None, subsets(), subsets(), true),
        ("with versions of pods", managed(json!({})), None, versioned, subsets(), true),
        ("in another order", managed(json!({})), None, reversed, subsets(), true),
        ("not packed", managed(json!({})), None, split, subsets(), true),
        (
            "the label of a headless service",
            managed(json!({ "service.kubernetes.io/headless": "" })),
            None,
            subsets(),
            subsets(),
            true,
        ),
        ("another node", managed(json!({})), None, other_node, subsets(), false),
        ("an address less", managed(json!({})), None, vec![], subsets(), false),
        ("an address more", managed(json!({})), None, subsets(), vec![], false),
        ("a label more", managed(json!({ "extra": "1" })), None, subsets(), subsets(), false),
        ("a label less", managed(json!({ "team": null })), None, subsets(), subsets(), false),
        ("another value", managed(json!({ "team": "b" })), None, subsets(), subsets(), false),
        (
            "no manager",
            managed(json!({ "endpoints.kubernetes.io/managed-by": "me" })),
            None,
            subsets(),
            subsets(),
            false,
        ),
        ("an annotation of times with more", managed(json!({})), truncation, subsets(), subsets(), false),
        ("truncated", managed(json!({})), truncation, truncated(), many(1001), true),
        ("truncated, without the annotation", managed(json!({})), None, full(), many(1001), false),
        ("not truncated by an earlier version", managed(json!({})), truncation, many(1001), many(1001), false),
        ("as many as fit", managed(json!({})), None, full(), full(), true),
        (
            "truncated, the annotation says something else",
            managed(json!({})),
            Some("warning"),
            truncated(),
            many(1001),
            false,
        ),
        ("warned by an earlier version, at capacity", managed(json!({})), Some("warning"), full(), full(), false),
        (
            "warned by an earlier version, below capacity",
            managed(json!({})),
            Some("warning"),
            subsets(),
            subsets(),
            false,
        ),
        ("another port", managed(json!({})), None, other_port, subsets(), false),
        ("not ready any more", managed(json!({})), None, subsets(), unready, false),
    ] {
        let mut labels = labels;
        labels.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let labels = service(&labels, "");
        let existing = Existing { labels: &labels.metadata.labels, over_capacity, subsets: existing };
        let plan = plan(&service(&json!({ "team": "a" }), "10.96.0.1"), desired, Some(existing), None);
        assert_eq!(plan == Plan::Keep, is_kept, "{name}");
    }
}

fn written(service: &Service, subsets: Vec<Subset>, trigger: Option<&str>) -> Desired {
    match plan(service, subsets, None, trigger.map(|time| time.parse().unwrap())) {
        Plan::Write(desired) => desired,
        Plan::Keep => panic!("endpoints that do not exist are written"),
    }
}

#[test]
fn labels_are_those_of_the_service_and_of_the_controller() {
    let (headless, managed) = ("service.kubernetes.io/headless", "endpoints.kubernetes.io/managed-by");
    let own = "endpoint-controller";
    for (name, labels, cluster_ip, expected) in [
        ("a service with an address", json!({ "team": "a" }), "10.96.0.1", json!({ "team": "a", managed: own })),
        ("headless", json!({ "team": "a" }), "None", json!({ "team": "a", managed: own, headless: "" })),
        ("no address yet", json!({}), "", json!({ managed: own, headless: "" })),
        ("a label of the service", json!({ headless: "x", managed: "me" }), "10.96.0.1", json!({ managed: own })),
    ] {
        let desired = written(&service(&labels, cluster_ip), vec![], None);
        assert_eq!(json!(desired.labels), expected, "{name}");
    }
}

#[test]
fn annotations_tell_the_time_of_the_change_and_that_addresses_are_left_out() {
    let web = service(&json!({}), "10.96.0.1");
    let (time, capacity) =
        ("endpoints.kubernetes.io/last-change-trigger-time", "endpoints.kubernetes.io/over-capacity");
    let now = "2026-01-02T12:00:00Z";
    let some = |value: &str| Some(value.to_owned());
    for (name, subsets, trigger, expected) in [
        ("nothing new", subsets(), None, [(time, None), (capacity, None)]),
        ("a change", subsets(), Some(now), [(time, some(now)), (capacity, None)]),
        ("too many", many(1001), Some(now), [(time, some(now)), (capacity, some("truncated"))]),
    ] {
        assert_eq!(written(&web, subsets, trigger).annotations, expected, "{name}");
    }
    assert_eq!(written(&web, many(1001), None).subsets[0].addresses.len(), 1000);
}

#[test]
fn the_plan_is_explained() {
    let web = service(&json!({}), "10.96.0.1");
    let words = |subsets| Plan::Write(written(&web, subsets, None)).explain();
    assert_eq!(words(many(3)), "writes endpoints with 3 addresses that are ready and 0 that are not");
    assert_eq!(
        words(many(1001)),
        "writes endpoints with 1000 addresses that are ready and 0 that are not; more than 1,000 are left out"
    );
}
