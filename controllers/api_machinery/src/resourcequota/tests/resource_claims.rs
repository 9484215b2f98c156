//! What resource claims add to the usage of a quota.

use std::sync::Arc;

use kcm_framework::api::views::{DeviceClass, Pod, ResourceClaim};
use serde_json::{Value, json};

use super::{GATES, decode, hard, plan_of, quota, written};
use crate::resourcequota::evaluator::Evaluator;
use crate::resourcequota::evaluator::resource_claims::{DeviceClasses, DeviceConstraint};
use crate::resourcequota::observe::{Content, Observed};
use crate::resourcequota::settings::Gates;

const ALL: [&str; 4] = [
    "count/resourceclaims.resource.k8s.io",
    "gpu.deviceclass.resource.k8s.io/devices",
    "requests.deviceclass.resource.kubernetes.io/gpu",
    "requests.example.com/gpu",
];

fn classes() -> DeviceClasses {
    let class = |name: &str, resource: Option<&str>| {
        decode::<DeviceClass>(&json!({ "metadata": { "name": name }, "spec": { "extendedResourceName": resource } }))
    };
    DeviceClasses::of(&[
        class("gpu", Some("example.com/gpu")),
        class("big-gpu", Some("example.com/gpu")),
        class("tpu", None),
    ])
}

fn exactly(class: &str, mode: &str, count: i64) -> Value {
    json!({ "name": "r", "exactly": { "deviceClassName": class, "allocationMode": mode, "count": count } })
}

fn with_admin_access(mut request: Value) -> Value {
    request["exactly"]["adminAccess"] = json!(true);
    request
}

fn first_of(alternatives: &[(&str, &str, i64)]) -> Value {
    let alternatives: Vec<Value> = alternatives
        .iter()
        .map(|(class, mode, count)| json!({ "name": "s", "deviceClassName": class, "allocationMode": mode, "count": count }))
        .collect();
    json!({ "name": "r", "firstAvailable": alternatives })
}

/// A claim; one that names a pod was made by the scheduler for its extended resources.
fn claim(name: &str, pod: Option<&str>, requests: &[Value]) -> Arc<ResourceClaim> {
    let mut object = json!({
        "metadata": { "namespace": "shop", "name": name, "creationTimestamp": "2026-01-02T11:00:00Z" },
        "spec": { "devices": { "requests": requests } },
    });
    if let Some(pod) = pod {
        object["metadata"]["annotations"] = json!({ "resource.kubernetes.io/extended-resource-claim": "true" });
        object["metadata"]["ownerReferences"] = json!([{ "apiVersion": "v1", "kind": "Pod", "name": pod, "uid": format!("uid-{pod}"), "controller": true }]);
    }
    decode(&object)
}

/// A pod that requests so many devices by the explicit and the implicit extended resource.
fn pod(name: &str, explicit: u8, implicit: u8, claim: Option<&str>) -> Arc<Pod> {
    let requests = json!({
        "example.com/gpu": explicit.to_string(), "deviceclass.resource.kubernetes.io/gpu": implicit.to_string(),
    });
    decode(&json!({
        "metadata": { "namespace": "shop", "name": name, "uid": format!("uid-{name}") },
        "spec": { "containers": [{ "name": "main", "resources": { "requests": requests } }] },
        "status": { "extendedResourceClaimStatus": claim.map(|name| json!({ "resourceClaimName": name })) },
    }))
}

fn usage(claims: Vec<Arc<ResourceClaim>>, pods: Vec<Arc<Pod>>, gates: Gates) -> Vec<String> {
    let content = vec![(Evaluator::ResourceClaims, Content::ResourceClaims(claims, pods))];
    let quota = quota(&json!({ "hard": hard(&ALL) }), &Value::Null);
    written(&plan_of(&quota, &Observed { content, classes: classes() }, gates))
}

#[test]
fn a_claim_counts_as_the_most_devices_that_it_may_be_allocated() {
    for (name, requests, devices) in [
        ("no request", vec![], 0),
        ("one device", vec![exactly("gpu", "ExactCount", 1)], 1),
        ("of another class", vec![exactly("tpu", "ExactCount", 3)], 0),
        ("of many requests", vec![exactly("gpu", "ExactCount", 1), exactly("gpu", "ExactCount", 4)], 5),
        ("all devices", vec![exactly("gpu", "All", 0)], 32),
        ("admin access, which is not exempt", vec![with_admin_access(exactly("gpu", "ExactCount", 1))], 1),
        ("a mode of the future", vec![exactly("gpu", "Some", 7)], 0),
        ("a request of the future", vec![json!({ "name": "r" })], 0),
        ("the most of alternatives", vec![first_of(&[("gpu", "ExactCount", 2), ("gpu", "ExactCount", 6)])], 6),
        ("an alternative with all devices", vec![first_of(&[("gpu", "ExactCount", 2), ("gpu", "All", 0)])], 32),
        ("each class of the alternatives", vec![first_of(&[("gpu", "ExactCount", 2), ("tpu", "ExactCount", 9)])], 2),
    ] {
        let expected = [
            format!("{}=1", ALL[0]),
            format!("{}={devices}", ALL[1]),
            format!("{}={devices}", ALL[2]),
            format!("{}={devices}", ALL[3]),
        ];
        assert_eq!(usage(vec![claim("claim", None, &requests)], vec![], GATES), expected, "{name}");
    }
}

#[test]
fn devices_that_a_pod_is_charged_for_are_not_charged_again() {
    let two = [exactly("gpu", "ExactCount", 2)];
    let of_pod = |name: &str| claim(name, Some("pod"), &two);
    for (name, claims, pods, [implicit, explicit]) in [
        ("by name", vec![of_pod("claim")], vec![pod("pod", 2, 0, Some("claim"))], [2, 0]),
        ("by class", vec![of_pod("claim")], vec![pod("pod", 0, 2, Some("claim"))], [0, 2]),
        ("by both", vec![of_pod("claim")], vec![pod("pod", 1, 1, Some("claim"))], [1, 1]),
        ("more is requested than claimed", vec![of_pod("claim")], vec![pod("pod", 9, 9, Some("claim"))], [0, 0]),
        ("the pod names no claim yet", vec![of_pod("claim")], vec![pod("pod", 2, 2, None)], [0, 0]),
        ("the pod names another claim", vec![of_pod("claim")], vec![pod("pod", 2, 2, Some("other"))], [2, 2]),
        ("the first of two claims", vec![of_pod("a"), of_pod("b")], vec![pod("pod", 2, 2, None)], [2, 2]),
        ("a claim of a user", vec![claim("claim", None, &two)], vec![pod("pod", 2, 2, None)], [2, 2]),
        ("the pod is gone", vec![of_pod("claim")], vec![pod("another", 2, 2, None)], [2, 2]),
    ] {
        let found = usage(claims, pods, GATES);
        assert_eq!(found[2..], [format!("{}={implicit}", ALL[2]), format!("{}={explicit}", ALL[3])], "{name}");
    }
}

/// The rows `hybrid-extended-resource-claim` and `init-extended-resource-claim` of upstream.
#[test]
fn extended_resources_of_init_containers_count_against_a_claim_by_their_maximum() {
    let both = |name: &str| {
        let requests = json!({ "example.com/gpu": "1", "deviceclass.resource.kubernetes.io/gpu": "1" });
        json!({ "name": name, "resources": { "requests": requests } })
    };
    for (name, init) in [("one init container", vec![both("a")]), ("two init containers", vec![both("a"), both("b")])] {
        let pod = decode(&json!({
            "metadata": { "namespace": "shop", "name": "pod", "uid": "uid-pod" },
            "spec": { "initContainers": init, "containers": [both("main")] },
            "status": { "extendedResourceClaimStatus": { "resourceClaimName": "claim" } },
        }));
        let two = [exactly("gpu", "ExactCount", 1), exactly("gpu", "ExactCount", 1)];
        let found = usage(vec![claim("claim", Some("pod"), &two)], vec![pod], GATES);
        let expected = [
            "count/resourceclaims.resource.k8s.io=1",
            "gpu.deviceclass.resource.k8s.io/devices=2",
            "requests.deviceclass.resource.kubernetes.io/gpu=1",
            "requests.example.com/gpu=1",
        ];
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_pod_that_was_recreated_is_another() {
    let mut object = json!({ "metadata": { "namespace": "shop", "name": "pod", "uid": "new" } });
    object["spec"] =
        json!({ "containers": [{ "name": "main", "resources": { "requests": { "example.com/gpu": "2" } } }] });
    let claim = claim("claim", Some("pod"), &[exactly("gpu", "ExactCount", 2)]);
    assert_eq!(usage(vec![claim], vec![decode(&object)], GATES)[3], "requests.example.com/gpu=2");
}

#[test]
fn all_classes_of_an_extended_resource_count_for_it() {
    let claim = claim("claim", None, &[exactly("gpu", "ExactCount", 1), exactly("big-gpu", "ExactCount", 2)]);
    assert_eq!(
        usage(vec![claim], vec![], GATES)[1..],
        [
            "gpu.deviceclass.resource.k8s.io/devices=1",
            "requests.deviceclass.resource.kubernetes.io/gpu=1",
            "requests.example.com/gpu=3"
        ]
    );
}

#[test]
fn extended_resources_are_counted_for_classes_that_there_are_and_with_the_gate() {
    let without = Gates { dra_extended_resource: false, ..GATES };
    for (constraint, gates, is_counted) in [
        (ALL[0], GATES, true),
        (ALL[1], without, true),
        ("unknown.deviceclass.resource.k8s.io/devices", GATES, true),
        (ALL[2], GATES, true),
        (ALL[2], without, false),
        ("requests.deviceclass.resource.kubernetes.io/tpu", GATES, true),
        ("requests.deviceclass.resource.kubernetes.io/unknown", GATES, false),
        (ALL[3], GATES, true),
        (ALL[3], without, false),
        ("requests.example.com/dongle", GATES, false),
        ("requests.cpu", GATES, false),
        ("example.com/gpu", GATES, false),
    ] {
        let found = DeviceConstraint::parse(constraint, &classes(), gates).is_some();
        assert_eq!(found, is_counted, "{constraint} with {gates:?}");
    }
}
