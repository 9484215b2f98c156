//! The addresses of the pods of a service.

use serde_json::{Value, json};

use super::super::addresses::{has_endpoints_of_pods, subsets_of};
use crate::shared::tests::{addresses, merge, pod, service};

fn spec(change: &Value) -> Value {
    let mut spec = json!({
        "selector": { "app": "web" }, "clusterIP": "10.96.0.1", "ipFamilies": ["IPv4"],
        "ports": [{ "name": "", "protocol": "TCP", "port": 80, "targetPort": 8080 }],
    });
    merge(&mut spec, change);
    spec
}

/// The subsets of a service with a pod that is ready and has addresses of both families.
fn subsets(of_service: &Value, of_pod: &Value) -> Value {
    let mut fields = json!({
        "spec": { "containers": [{ "name": "main", "ports": [{ "name": "http", "containerPort": 9090, "protocol": "TCP" }] }] },
        "status": {
            "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }],
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    merge(&mut fields, of_pod);
    let pod = pod("a", &json!({ "app": "web" }), &fields);
    json!(subsets_of(&service("web", &spec(of_service)), &[pod], addresses()))
}

fn of(ip: &str) -> Value {
    let target = json!({ "kind": "Pod", "namespace": "shop", "name": "a", "uid": "uid-a" });
    json!({ "ip": ip, "nodeName": "node-a", "targetRef": target })
}

#[test]
fn a_pod_has_an_address_where_it_can_be_reached() {
    let tcp = json!([{ "port": 8080, "protocol": "TCP" }]);
    let ready = json!([{ "addresses": [of("10.0.0.1")], "ports": tcp }]);
    let not_ready = json!([{ "notReadyAddresses": [of("10.0.0.1")], "ports": tcp }]);
    let all = json!({ "publishNotReadyAddresses": true });
    let unready = json!({ "status": { "conditions": [] } });
    let deleted = json!({ "metadata": { "deletionTimestamp": "2026-01-02T12:00:00Z" } });
    let ended = json!({ "status": { "phase": "Failed" } });
    let phase = |phase: &str| json!({ "status": { "phase": phase } });
    let no_address = json!({ "status": { "podIPs": [] } });
    let only_ipv6 = json!({ "status": { "podIPs": [{ "ip": "fd00::1" }] } });
    for (name, of_service, of_pod, expected) in [
        ("ready", &json!({}), &json!({}), &ready),
        ("not ready", &json!({}), &unready, &not_ready),
        ("not ready, published", &all, &unready, &ready),
        ("terminating", &json!({}), &deleted, &json!([])),
        ("terminating, published", &all, &deleted, &ready),
        ("ended", &json!({}), &ended, &json!([])),
        ("ended, published", &all, &ended, &json!([])),
        ("pending with an address", &json!({}), &phase("Pending"), &ready),
        ("unknown with an address", &json!({}), &phase("Unknown"), &ready),
        ("no address", &json!({}), &no_address, &json!([])),
        ("no address of the family", &json!({}), &only_ipv6, &json!([])),
    ] {
        assert_eq!(&subsets(of_service, of_pod), expected, "{name}");
    }
}

#[test]
fn the_family_is_the_first_of_the_service() {
    for (name, of_service, of_pod, expected) in [
        ("IPv6 first", json!({ "ipFamilies": ["IPv6", "IPv4"] }), json!({}), "fd00::1"),
        ("unknown, with an address", json!({ "ipFamilies": null, "clusterIP": "fd01::1" }), json!({}), "fd00::1"),
        ("unknown, with an address of IPv4", json!({ "ipFamilies": null }), json!({}), "10.0.0.1"),
        ("unknown and headless", json!({ "ipFamilies": null, "clusterIP": "None" }), json!({}), "10.0.0.1"),
        (
            "unknown and headless, with a pod of IPv6 first",
            json!({ "ipFamilies": null, "clusterIP": "None" }),
            json!({ "status": { "podIPs": [{ "ip": "fd00::1" }, { "ip": "10.0.0.1" }] } }),
            "fd00::1",
        ),
    ] {
        assert_eq!(subsets(&of_service, &of_pod)[0]["addresses"][0]["ip"], expected, "{name}");
    }
}

#[test]
fn a_service_without_families_has_no_address_of_a_pod_of_the_other_family() {
    let no_families = |cluster_ip: &str| json!({ "ipFamilies": null, "clusterIP": cluster_ip });
    let pod = |ip: &str| json!({ "status": { "podIPs": [{ "ip": ip }] } });
    for (name, of_service, of_pod, expected) in [
        ("IPv4, and a pod of IPv4", no_families("10.1.0.1"), pod("10.0.0.1"), Some("10.0.0.1")),
        ("IPv4, and a pod of IPv6", no_families("10.1.0.1"), pod("fd00::1"), None),
        ("IPv6, and a pod of IPv4", no_families("fd01::1"), pod("10.0.0.1"), None),
        ("headless, and a pod of IPv4", no_families("None"), pod("10.0.0.1"), Some("10.0.0.1")),
        ("headless, and a pod of IPv6", no_families("None"), pod("fd00::1"), Some("fd00::1")),
        ("headless, and a pod without an address", no_families("None"), json!({ "status": { "podIPs": [] } }), None),
    ] {
        let found = subsets(&of_service, &of_pod);
        let ip = found.pointer("/0/addresses/0/ip").and_then(Value::as_str);
        assert_eq!(ip, expected, "{name}");
    }
}

#[test]
fn phase_readiness_and_termination_decide_about_the_address() {
    const READY: (usize, usize) = (1, 0);
    const UNREADY: (usize, usize) = (0, 1);
    const NONE: (usize, usize) = (0, 0);
    for (phase, is_ready, is_deleted, expected, published) in [
        ("Running", true, false, READY, READY),
        ("Running", true, true, NONE, READY),
        ("Running", false, false, UNREADY, READY),
        ("Running", false, true, NONE, READY),
        ("Pending", true, false, READY, READY),
        ("Pending", true, true, NONE, READY),
        ("Pending", false, false, UNREADY, READY),
        ("Pending", false, true, NONE, READY),
        ("Unknown", true, false, READY, READY),
        ("Unknown", true, true, NONE, READY),
        ("Unknown", false, false, UNREADY, READY),
        ("Unknown", false, true, NONE, READY),
        ("Failed", false, false, NONE, NONE),
        ("Succeeded", false, false, NONE, NONE),
    ] {
        let conditions = json!([{ "type": "Ready", "status": if is_ready { "True" } else { "False" } }]);
        let mut pod = json!({ "status": { "phase": phase, "conditions": conditions } });
        if is_deleted {
            merge(&mut pod, &json!({ "metadata": { "deletionTimestamp": "2026-01-02T12:00:00Z" } }));
        }
        for (tolerates, expected) in [(false, expected), (true, published)] {
            let found = subsets(&json!({ "publishNotReadyAddresses": tolerates }), &pod);
            let count =
                |field: &str| found.pointer(&format!("/0/{field}")).and_then(Value::as_array).map_or(0, Vec::len);
            let counts = (count("addresses"), count("notReadyAddresses"));
            assert_eq!(counts, expected, "{phase}, ready {is_ready}, deleted {is_deleted}, published {tolerates}");
        }
    }
}

#[test]
fn ports_are_those_of_the_service_in_the_pod() {
    let port = |target: Value| json!({ "name": "web", "protocol": "TCP", "port": 80, "targetPort": target });
    let with_app = json!({ "protocol": "TCP", "port": 80, "targetPort": 1, "appProtocol": "h2c" });
    for (name, of_service, expected) in [
        (
            "a number",
            json!({ "ports": [port(json!(81))] }),
            json!([[{ "name": "web", "port": 81, "protocol": "TCP" }]]),
        ),
        (
            "a name",
            json!({ "ports": [port(json!("http"))] }),
            json!([[{ "name": "web", "port": 9090, "protocol": "TCP" }]]),
        ),
        ("an unknown name", json!({ "ports": [port(json!("none"))] }), json!([])),
        (
            "an application",
            json!({ "ports": [with_app] }),
            json!([[{ "port": 1, "protocol": "TCP", "appProtocol": "h2c" }]]),
        ),
        (
            "UDP",
            json!({ "ports": [{ "protocol": "UDP", "port": 53, "targetPort": 53 }] }),
            json!([[{ "port": 53, "protocol": "UDP" }]]),
        ),
        (
            "SCTP",
            json!({ "ports": [{ "protocol": "SCTP", "port": 38412, "targetPort": 38412 }] }),
            json!([[{ "port": 38412, "protocol": "SCTP" }]]),
        ),
        ("none", json!({ "ports": [] }), json!([])),
        ("none, headless", json!({ "ports": [], "clusterIP": "None" }), json!([null])),
    ] {
        let found = subsets(&of_service, &json!({}));
        let ports: Vec<Value> = found.as_array().unwrap().iter().map(|subset| subset["ports"].clone()).collect();
        assert_eq!(json!(ports), expected, "{name}");
    }
}

#[test]
fn the_hostname_is_that_of_a_pod_whose_subdomain_is_the_service() {
    for (subdomain, expected) in [("web", json!("db-0")), ("other", Value::Null)] {
        let pod = json!({ "spec": { "hostname": "db-0", "subdomain": subdomain } });
        assert_eq!(subsets(&json!({}), &pod)[0]["addresses"][0]["hostname"], expected, "{subdomain}");
    }
}

#[test]
fn services_that_select_no_pods_have_no_endpoints_of_pods() {
    for (name, change, expected) in [
        ("a selector", json!({}), true),
        ("no selector", json!({ "selector": null }), false),
        ("an alias", json!({ "type": "ExternalName" }), false),
    ] {
        assert_eq!(has_endpoints_of_pods(&service("web", &spec(&change))), expected, "{name}");
    }
}

#[test]
fn a_pod_may_have_one_number_for_several_protocols() {
    let ports = ["TCP", "UDP", "SCTP"].map(
        |protocol| json!({ "name": protocol.to_lowercase(), "protocol": protocol, "port": 80, "targetPort": 8080 }),
    );
    let found = subsets(&json!({ "ports": ports }), &json!({}));
    let [subset] = found.as_array().unwrap().as_slice() else { panic!("{found}") };
    assert_eq!(subset["addresses"], json!([of("10.0.0.1")]));
    let mut ports = subset["ports"].as_array().unwrap().clone();
    ports.sort_unstable_by_key(|port| port["name"].to_string());
    let expected =
        ["sctp", "tcp", "udp"].map(|name| json!({ "name": name, "port": 8080, "protocol": name.to_uppercase() }));
    assert_eq!(ports, expected);
}
