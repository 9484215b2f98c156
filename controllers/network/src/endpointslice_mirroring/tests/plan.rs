//! Which slices endpoints should have.

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::{AddressType, EndpointSlice, Endpoints};
use kcm_framework::events::Event;
use serde_json::{Value, json};

use super::super::plan::{Plan, annotations_of, labels_of, plan};
use crate::shared::slices::{Draft, Endpoint, ExistingSlice};
use crate::shared::subsets::{Subset, repack};
use crate::shared::tests::merge;

fn subsets(subsets: &Value) -> Vec<Subset> {
    serde_json::from_value(subsets.clone()).unwrap()
}

fn endpoints(metadata: &Value) -> Endpoints {
    let mut object = json!({ "metadata": { "namespace": "shop", "name": "web", "uid": "uid-web" } });
    merge(&mut object["metadata"], metadata);
    Endpoints::decode(&object.to_string()).unwrap()
}

/// A mirrored slice with these endpoints, whose fields `change` adds.
fn slice(name: &str, endpoints: &Value, change: &Value) -> ExistingSlice {
    let labels = json!({
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    });
    let owner = json!({ "apiVersion": "v1", "kind": "Endpoints", "name": "web", "uid": "uid-web", "controller": true });
    let mut slice = json!({
        "metadata": { "namespace": "shop", "name": name, "uid": name, "labels": labels, "ownerReferences": [owner] },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{ "name": "", "protocol": "TCP", "port": 80 }],
    });
    merge(&mut slice, change);
    ExistingSlice::read(Arc::new(EndpointSlice::decode(&slice.to_string()).unwrap())).unwrap()
}

fn port(number: i32) -> Value {
    json!({ "port": number, "protocol": "TCP" })
}

fn run(given: &Value, slices: Vec<ExistingSlice>) -> Plan {
    plan(&endpoints(&json!({})), subsets(given), slices, 3)
}

fn addresses(endpoints: &[Endpoint]) -> String {
    let shown = endpoints.iter().map(|endpoint| {
        let state = if endpoint.is_ready() { "" } else { "-" };
        format!("{state}{}", endpoint.addresses.join("+"))
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn created(plan: &Plan) -> Vec<(&'static str, String)> {
    plan.create.iter().map(|(family, draft)| (family.as_str(), addresses(&draft.endpoints))).collect()
}

fn updated(plan: &Plan) -> Vec<(String, String)> {
    let name = |draft: &Draft| draft.existing.as_ref().unwrap().metadata.key.name().to_owned();
    plan.update.iter().map(|draft| (name(draft), addresses(&draft.endpoints))).collect()
}

#[test]
fn subsets_are_repacked() {
    let (a, b) = (json!({ "ip": "10.0.0.1" }), json!({ "ip": "10.0.0.2" }));
    let named = |uid: &str| json!({ "ip": "10.0.0.1", "targetRef": { "uid": uid } });
    for (name, given, expected) in [
        ("none", json!([]), json!([])),
        (
            "one address on two ports of two subsets",
            json!([{ "addresses": [a], "ports": [port(2)] }, { "addresses": [a], "ports": [port(1)] }]),
            json!([{ "addresses": [a], "ports": [port(1), port(2)] }]),
        ),
        (
            "two addresses on one port of two subsets",
            json!([{ "addresses": [b], "ports": [port(1)] }, { "addresses": [a], "ports": [port(1)] }]),
            json!([{ "addresses": [a, b], "ports": [port(1)] }]),
        ),
        (
            "an address that is not ready in one of them",
            json!([{ "addresses": [a, b], "ports": [port(1)] }, { "notReadyAddresses": [a], "ports": [port(1)] }]),
            json!([{ "addresses": [b], "notReadyAddresses": [a], "ports": [port(1)] }]),
        ),
        (
            "addresses without ports",
            json!([{ "addresses": [a] }, { "addresses": [b] }]),
            json!([{ "addresses": [a, b] }]),
        ),
        (
            "the same address twice",
            json!([{ "addresses": [a, a], "ports": [port(1)] }]),
            json!([{ "addresses": [a], "ports": [port(1)] }]),
        ),
        (
            "one address of two hosts",
            json!([{ "addresses": [named("x"), named("y")], "ports": [port(1)] }]),
            json!([{ "addresses": [named("x"), named("y")], "ports": [port(1)] }]),
        ),
        ("no address", json!([{ "ports": [port(1)] }]), json!([])),
    ] {
        assert_eq!(json!(repack(subsets(&given))), expected, "{name}");
    }
}

#[test]
fn each_family_and_each_set_of_ports_has_a_slice() {
    let given = json!([
        { "addresses": [{ "ip": "10.0.0.1" }, { "ip": "fd00:0::1" }], "notReadyAddresses": [{ "ip": "010.0.0.2" }], "ports": [port(80)] },
        { "addresses": [{ "ip": "10.0.0.3" }], "ports": [port(81)] },
    ]);
    let plan = run(&given, vec![]);
    assert_eq!(
        created(&plan),
        [("IPv4", "10.0.0.1 -10.0.0.2".to_owned()), ("IPv4", "10.0.0.3".to_owned()), ("IPv6", "fd00::1".to_owned())]
    );
    assert_eq!((plan.added, plan.updated, plan.removed, plan.skipped), (4, 0, 0, 0));
    assert_eq!((plan.efficiency.endpoints, plan.efficiency.slices), (4, 3));
}

#[test]
fn an_endpoint_has_what_its_address_has() {
    let target = json!({ "kind": "Pod", "name": "a", "namespace": "shop", "uid": "u" });
    let address = json!({ "ip": "10.0.0.1", "hostname": "h", "nodeName": "n", "targetRef": target });
    let plan = run(
        &json!([{ "addresses": [address], "ports": [{ "name": "http", "port": 80, "protocol": "TCP", "appProtocol": "h2c" }] }]),
        vec![],
    );
    let draft = &plan.create[0].1;
    assert_eq!(
        json!(draft.endpoints[0]),
        json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": true }, "hostname": "h", "nodeName": "n", "targetRef": target })
    );
    assert_eq!(json!(draft.ports), json!([{ "name": "http", "port": 80, "protocol": "TCP", "appProtocol": "h2c" }]));
}

#[test]
fn addresses_beyond_the_limit_and_invalid_ones_are_skipped() {
    let ips = |ips: &[&str]| Value::from(ips.iter().map(|ip| json!({ "ip": ip })).collect::<Vec<_>>());
    let events = |plan: &Plan| {
        let texts = plan.events.iter().map(Event::text);
        texts.map(|text| format!("{}: {}", text.reason, text.message)).collect::<Vec<_>>()
    };
    for (name, ready, unready, expected, skipped, recorded) in [
        ("within the limit", ips(&["10.0.0.1"]), ips(&["10.0.0.2"]), "10.0.0.1 -10.0.0.2", 0, vec![]),
        (
            "those that are ready come first",
            ips(&["10.0.0.3", "10.0.0.4"]),
            ips(&["10.0.0.1", "10.0.0.2"]),
            "10.0.0.3 10.0.0.4 -10.0.0.1",
            1,
            vec![
                "TooManyAddressesToMirror: A max of 3 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped",
            ],
        ),
        (
            "an invalid one",
            ips(&["10.0.0.1", "nowhere"]),
            ips(&[]),
            "10.0.0.1",
            1,
            vec!["InvalidIPAddress: Skipped 1 invalid IP addresses when mirroring to EndpointSlices"],
        ),
    ] {
        let plan = run(&json!([{ "addresses": ready, "notReadyAddresses": unready, "ports": [port(80)] }]), vec![]);
        assert_eq!(created(&plan), [("IPv4", expected.to_owned())], "{name}");
        assert_eq!(plan.skipped, skipped, "{name}");
        assert_eq!(events(&plan), recorded, "{name}");
    }
}

#[test]
fn a_slice_is_updated_where_anything_of_it_changes() {
    let ready = json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": true } });
    let unready = json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": false } });
    let other = json!({ "addresses": ["10.0.0.9"], "conditions": { "ready": true } });
    let given = json!([{ "addresses": [{ "ip": "10.0.0.1" }], "ports": [port(80)] }]);
    let metadata = |change: Value| json!({ "metadata": change });
    let earlier =
        json!([{ "apiVersion": "v1", "kind": "Endpoints", "name": "web", "uid": "earlier", "controller": true }]);
    for (name, existing, change, totals) in [
        ("nothing", json!([ready]), json!({}), None),
        ("readiness", json!([unready]), json!({}), Some((0, 1, 0))),
        ("an address less", json!([ready, other]), json!({}), Some((0, 0, 1))),
        ("another address", json!([other]), json!({}), Some((1, 0, 1))),
        ("a label", json!([ready]), metadata(json!({ "labels": { "a": "b" } })), Some((0, 0, 0))),
        ("an annotation", json!([ready]), metadata(json!({ "annotations": { "a": "b" } })), Some((0, 0, 0))),
        (
            "the annotation of kubectl, which is not mirrored",
            json!([ready]),
            metadata(json!({ "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}" } })),
            Some((0, 0, 0)),
        ),
        (
            "endpoints that were recreated",
            json!([ready]),
            metadata(json!({ "ownerReferences": earlier })),
            Some((0, 0, 0)),
        ),
    ] {
        let plan = run(&given, vec![slice("web-0", &existing, &change)]);
        let expected: Vec<_> = totals.iter().map(|_| ("web-0".to_owned(), "10.0.0.1".to_owned())).collect();
        assert_eq!(updated(&plan), expected, "{name}");
        assert_eq!((plan.added, plan.updated, plan.removed), totals.unwrap_or_default(), "{name}");
        assert!(plan.create.is_empty() && plan.delete.is_empty(), "{name}");
    }
}

#[test]
fn slices_that_are_too_many_are_deleted_or_used_again() {
    let ready = json!([{ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }]);
    let (mine, second) = (|| slice("web-0", &ready, &json!({})), || slice("web-1", &ready, &json!({})));
    let on_port = |number: i32| json!([{ "addresses": [{ "ip": "10.0.0.1" }], "ports": [port(number)] }]);
    let deleted =
        |plan: &Plan| plan.delete.iter().map(|slice| slice.metadata.key.name().to_owned()).collect::<Vec<_>>();

    let plan = run(&on_port(80), vec![mine(), second()]);
    assert_eq!(
        (deleted(&plan), plan.update.len()),
        (vec!["web-1".to_owned()], 0),
        "of two with the same ports one stays"
    );

    let plan = run(&json!([]), vec![mine()]);
    assert_eq!((deleted(&plan), plan.update.len()), (vec!["web-0".to_owned()], 0), "no address is left");

    let plan = run(&on_port(81), vec![mine()]);
    assert_eq!((deleted(&plan), plan.create.len()), (vec![], 0), "for other ports it is used again");
    assert_eq!(updated(&plan), [("web-0".to_owned(), "10.0.0.1".to_owned())]);
    assert_eq!(json!(plan.update[0].ports), json!([{ "name": "", "port": 81, "protocol": "TCP" }]));

    let of_six = slice(
        "web-6",
        &json!([{ "addresses": ["fd00::1"], "conditions": { "ready": true } }]),
        &json!({ "addressType": "IPv6" }),
    );
    let plan = run(&on_port(80), vec![of_six]);
    assert_eq!(deleted(&plan), ["web-6"], "not for another family");
    assert_eq!(plan.create[0].0, AddressType::IPv4);
}

#[test]
fn the_ports_of_a_new_slice_have_upstreams_order_and_those_of_an_existing_one_stay() {
    let port = |name: &str, number: i32| json!({ "name": name, "port": number, "protocol": "TCP" });
    let both = json!([port("http", 80), port("https", 443)]);
    let given = json!([{ "addresses": [{ "ip": "10.0.0.1" }], "ports": both }]);
    let plan = run(&given, vec![]);
    assert_eq!(json!(plan.create[0].1.ports), json!([port("https", 443), port("http", 80)]));
    let ready = json!([{ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }]);
    let plan = run(&given, vec![slice("web-0", &ready, &json!({ "ports": both }))]);
    assert!(plan.create.is_empty() && plan.update.is_empty() && plan.delete.is_empty(), "{plan:?}");
}

#[test]
fn annotations_are_mirrored_but_for_two() {
    let annotations = json!({
        "a": "b",
        "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-02T12:00:00Z",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    });
    let mirrored = |annotations: &Value| json!(annotations_of(&endpoints(&json!({ "annotations": annotations }))));
    assert_eq!(mirrored(&annotations), json!({ "a": "b" }));
    let empty = json!({ "kubectl.kubernetes.io/last-applied-configuration": "" });
    assert_eq!(mirrored(&empty), json!({}), "also without a value");
}

/// Upstream's rows of `TestReconcile` with two subsets of several ports.
#[test]
fn an_existing_slice_takes_the_subset_of_its_ports_and_the_other_one_gets_a_new_slice() {
    let ports = |tcp: i32, udp: i32| json!([{ "name": "http", "port": tcp, "protocol": "TCP" }, { "name": "https", "port": udp, "protocol": "UDP" }]);
    let address = |ip: &str, pod: &str| json!({ "ip": ip, "hostname": pod, "nodeName": "node" });
    let given = json!([
        { "addresses": [address("10.0.0.1", "pod-1"), address("10.0.0.2", "pod-2")], "ports": ports(80, 443) },
        {
            "addresses": [address("10.0.1.1", "a"), address("10.0.1.2", "b"), address("10.0.1.3", "c")],
            "ports": ports(3000, 3001),
        },
    ]);
    let some = json!([
        { "addresses": ["10.0.0.2"], "hostname": "pod-2" },
        { "addresses": ["10.0.0.1", "10.0.0.3"], "hostname": "pod-1" },
    ]);
    for (name, existing, totals) in [
        ("existing empty EndpointSlice", json!([]), (5, 0, 0)),
        ("existing EndpointSlice with some addresses", some, (4, 1, 1)),
    ] {
        let plan = run(&given, vec![slice("web-0", &existing, &json!({ "ports": ports(80, 443) }))]);
        let updated: Vec<(String, Vec<String>)> = updated(&plan)
            .into_iter()
            .map(|(slice, addresses)| {
                let mut addresses: Vec<String> = addresses.split(' ').map(str::to_owned).collect();
                addresses.sort();
                (slice, addresses)
            })
            .collect();
        assert_eq!(updated, [("web-0".to_owned(), vec!["10.0.0.1".to_owned(), "10.0.0.2".to_owned()])], "{name}");
        assert_eq!(created(&plan), [("IPv4", "10.0.1.1 10.0.1.2 10.0.1.3".to_owned())], "{name}");
        assert_eq!((plan.added, plan.updated, plan.removed), totals, "{name}");
        assert!(plan.delete.is_empty(), "{name}");
    }
}

#[test]
fn slices_of_an_address_type_that_is_no_family_are_deleted() {
    let ready = json!([{ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }]);
    let given = json!([{ "addresses": [{ "ip": "10.0.0.1" }], "ports": [port(80)] }]);
    for address_type in ["FQDN", "IP"] {
        let plan = run(&given, vec![slice("web-0", &ready, &json!({ "addressType": address_type }))]);
        assert_eq!((created(&plan), plan.update.len()), (vec![("IPv4", "10.0.0.1".to_owned())], 0), "{address_type}");
        assert_eq!(plan.delete.iter().map(|slice| slice.metadata.key.name()).collect::<Vec<_>>(), ["web-0"]);
    }
}

#[test]
fn endpoints_whose_addresses_are_all_invalid_have_no_slice() {
    let given = json!([{ "addresses": [{ "ip": "nowhere" }, { "ip": "" }], "ports": [port(80)] }]);
    let plan = run(&given, vec![]);
    assert_eq!((created(&plan), plan.skipped, plan.events.len()), (vec![], 2, 1));
    let ready = json!([{ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }]);
    let plan = run(&given, vec![slice("web-0", &ready, &json!({}))]);
    assert_eq!((plan.delete.len(), plan.update.len(), plan.removed), (1, 0, 1));
}

#[test]
fn as_many_slices_are_used_again_as_there_are() {
    let ready = json!([{ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }]);
    let on = |number: i32| json!({ "addresses": [{ "ip": "10.0.0.1" }], "ports": [port(number)] });
    let other = |name: &str, number: i32| slice(name, &ready, &json!({ "ports": [port(number)] }));
    let two = json!([on(1), { "addresses": [{ "ip": "10.0.0.2" }], "ports": [port(2)] }]);
    for (name, given, slices, counts) in [
        ("two to create and one to delete", two, vec![other("web-0", 8)], (1, 1, 0)),
        ("one to create and two to delete", json!([on(1)]), vec![other("web-0", 8), other("web-1", 9)], (0, 1, 1)),
    ] {
        let plan = run(&given, slices);
        assert_eq!((plan.create.len(), plan.update.len(), plan.delete.len()), counts, "{name}");
    }
}

#[test]
fn labels_that_name_service_and_controller_are_those_of_the_slice() {
    let (service, managed_by) = ("kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by");
    let endpoints = endpoints(&json!({ "labels": { "a": "b", service: "other", managed_by: "me" } }));
    let expected = json!({ "a": "b", service: "web", managed_by: "endpointslicemirroring-controller.k8s.io" });
    assert_eq!(json!(labels_of(&endpoints)), expected);
}

#[test]
fn a_slice_is_used_again_for_its_own_family() {
    let existing = |name: &str, family: &str, ip: &str| {
        let endpoints = json!([{ "addresses": [ip], "conditions": { "ready": true } }]);
        slice(name, &endpoints, &json!({ "addressType": family }))
    };
    let (four, six) = (("web-4".to_owned(), "10.0.0.1".to_owned()), ("web-6".to_owned(), "fd00::1".to_owned()));
    for (name, ips, expected, deleted) in [
        ("both families", vec!["10.0.0.1", "fd00::1"], vec![four.clone(), six.clone()], vec![]),
        ("IPv4 alone", vec!["10.0.0.1"], vec![four], vec!["web-6"]),
        ("IPv6 alone", vec!["fd00::1"], vec![six], vec!["web-4"]),
    ] {
        let addresses: Vec<Value> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
        let slices = vec![existing("web-4", "IPv4", "10.0.0.1"), existing("web-6", "IPv6", "fd00::1")];
        let plan = run(&json!([{ "addresses": addresses, "ports": [port(81)] }]), slices);
        assert_eq!(updated(&plan), expected, "{name}");
        assert!(plan.update.iter().all(|draft| draft.ports.as_ref().is_some_and(|ports| ports[0].port == Some(81))));
        assert_eq!(plan.delete.iter().map(|slice| slice.metadata.key.name()).collect::<Vec<_>>(), deleted, "{name}");
        assert!(plan.create.is_empty(), "{name}");
    }
}
