//! Which slices a service should have.

use serde_json::{Value, json};

use super::super::hints::topology::ServiceHints;
use super::super::observe::{Candidate, Observed};
use super::super::plan::{FamilyPlan, Plan, Settings, labels_of, plan};
use super::{candidate, endpoint, pods, slice};
use crate::shared::slices::{Draft, ExistingSlice};
use crate::shared::tests::{addresses, merge, service};

fn spec(change: &Value) -> Value {
    let mut spec = json!({
        "selector": { "app": "web" }, "clusterIP": "10.96.0.1", "ipFamilies": ["IPv4"],
        "ports": [{ "name": "", "protocol": "TCP", "port": 80, "targetPort": 8080 }],
    });
    merge(&mut spec, change);
    spec
}

fn run(change: &Value, candidates: Vec<Candidate>, slices: Vec<ExistingSlice>) -> Plan {
    let settings = Settings { max_endpoints: 100, shares: None, addresses: addresses() };
    let observed = Observed { pods: Vec::new(), candidates, slices };
    plan(&service("web", &spec(change)), observed, settings, &mut ServiceHints::default())
}

fn one(plan: Plan) -> FamilyPlan {
    let [family] = <[FamilyPlan; 1]>::try_from(plan.families).expect("there is one family");
    family
}

fn json_of(draft: &Draft) -> Value {
    json!({ "endpoints": draft.endpoints, "ports": draft.ports })
}

#[test]
fn a_pod_becomes_an_endpoint() {
    let family = one(run(&json!({}), vec![candidate("a", &json!({}))], vec![]));
    assert_eq!(
        json_of(&family.slices.create[0]),
        json!({
            "endpoints": [{
                "addresses": ["10.0.0.1"],
                "conditions": { "ready": true, "serving": true, "terminating": false },
                "targetRef": { "kind": "Pod", "namespace": "shop", "name": "a", "uid": "uid-a" },
                "nodeName": "node-a",
                "zone": "a",
            }],
            "ports": [{ "name": "", "protocol": "TCP", "port": 8080 }],
        })
    );
}

#[test]
fn conditions_follow_readiness_deletion_and_what_the_service_publishes() {
    let deleted = json!({ "metadata": { "deletionTimestamp": "2026-01-02T12:00:00Z" } });
    let unready = json!({ "status": { "conditions": [] } });
    let mut both = deleted.clone();
    merge(&mut both, &unready);
    for (name, pod, published, (ready, serving, terminating)) in [
        ("ready", json!({}), false, (true, true, false)),
        ("not ready", unready.clone(), false, (false, false, false)),
        ("terminating", deleted.clone(), false, (false, true, true)),
        ("terminating and not ready", both.clone(), false, (false, false, true)),
        ("not ready, published", unready, true, (true, false, false)),
        ("terminating, published", deleted, true, (true, true, true)),
        ("terminating and not ready, published", both, true, (true, false, true)),
    ] {
        let change = json!({ "publishNotReadyAddresses": published });
        let family = one(run(&change, vec![candidate("a", &pod)], vec![]));
        let conditions = json_of(&family.slices.create[0])["endpoints"][0]["conditions"].clone();
        assert_eq!(conditions, json!({ "ready": ready, "serving": serving, "terminating": terminating }), "{name}");
    }
}

#[test]
fn each_family_has_the_addresses_of_its_kind() {
    let dual = json!({ "status": { "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }] } });
    let families = |change: Value| {
        let planned = run(&change, vec![candidate("a", &dual)], vec![]).families;
        let shown = planned
            .iter()
            .map(|family| (family.family.as_str(), family.slices.create[0].endpoints[0].addresses.join(" ")));
        shown.collect::<Vec<_>>()
    };
    let (v4, v6) = (("IPv4", "10.0.0.1".to_owned()), ("IPv6", "fd00::1".to_owned()));
    for (name, change, expected) in [
        ("IPv4", json!({}), vec![v4.clone()]),
        ("IPv6", json!({ "ipFamilies": ["IPv6"] }), vec![v6.clone()]),
        ("both", json!({ "ipFamilies": ["IPv6", "IPv4"] }), vec![v4.clone(), v6.clone()]),
        ("not said: that of its address", json!({ "ipFamilies": [], "clusterIP": "fd00::9" }), vec![v6.clone()]),
        ("not said, headless: both", json!({ "ipFamilies": [], "clusterIP": "None" }), vec![v4, v6]),
    ] {
        assert_eq!(families(change), expected, "{name}");
    }
    let only_v4 = one(run(&json!({ "ipFamilies": ["IPv6"] }), vec![candidate("a", &json!({}))], vec![]));
    assert_eq!(json_of(&only_v4.slices.create[0]), json!({ "endpoints": [], "ports": [] }), "no address of the family");
}

#[test]
fn pods_with_other_ports_are_in_other_slices() {
    let http = |number: i32| {
        let ports = json!([{ "name": "http", "containerPort": number, "protocol": "TCP" }]);
        json!({ "spec": { "containers": [{ "ports": ports }] } })
    };
    let change = json!({ "ports": [{ "name": "web", "protocol": "TCP", "port": 80, "targetPort": "http" }] });
    let candidates = vec![
        candidate("a", &http(8080)),
        candidate("b", &http(9090)),
        candidate("c", &http(8080)),
        candidate("without", &json!({})),
    ];
    let family = one(run(&change, candidates, vec![]));
    let shown: Vec<_> =
        family.slices.create.iter().map(|draft| (draft.ports.clone(), pods(&draft.endpoints))).collect();
    let numbers: Vec<_> = shown
        .iter()
        .map(|(ports, pods)| (ports.as_ref().unwrap().first().and_then(|port| port.port), pods.clone()))
        .collect();
    assert_eq!(numbers, [(None, vec!["without"]), (Some(8080), vec!["a", "c"]), (Some(9090), vec!["b"])]);
}

#[test]
fn a_hostname_is_that_of_the_subdomain_of_the_service() {
    for (name, spec, expected) in [
        ("its subdomain", json!({ "hostname": "web-0", "subdomain": "web" }), json!("web-0")),
        ("another subdomain", json!({ "hostname": "web-0", "subdomain": "other" }), Value::Null),
        ("no hostname", json!({ "subdomain": "web" }), Value::Null),
    ] {
        let family = one(run(&json!({}), vec![candidate("a", &json!({ "spec": spec }))], vec![]));
        assert_eq!(json_of(&family.slices.create[0])["endpoints"][0]["hostname"], expected, "{name}");
    }
}

#[test]
fn a_service_without_endpoints_has_one_empty_slice() {
    let empty = json!({ "ports": [], "endpoints": [] });
    let family = one(run(&json!({}), vec![], vec![]));
    assert_eq!(family.slices.create.iter().map(json_of).collect::<Vec<_>>(), [json!({ "ports": [], "endpoints": [] })]);

    let family = one(run(&json!({}), vec![], vec![slice("web-0", &[], &empty)]));
    assert_eq!((family.writes(), family.slices.unchanged.len()), (0, 1), "it stays");

    let family = one(run(&json!({}), vec![], vec![slice("web-0", &[endpoint("a")], &json!({}))]));
    assert_eq!((family.slices.create.len(), family.slices.delete.len()), (0, 0), "the last slice becomes it");
    assert_eq!(json_of(&family.slices.update[0]), json!({ "ports": [], "endpoints": [] }));

    let family = one(run(&json!({}), vec![candidate("a", &json!({}))], vec![slice("web-0", &[], &empty)]));
    assert_eq!((family.slices.create.len(), family.slices.delete.len()), (0, 0), "it becomes the first slice");
    assert_eq!(pods(&family.slices.update[0].endpoints), ["a"]);

    let two = vec![slice("web-0", &[], &empty), slice("web-1", &[], &empty)];
    let family = one(run(&json!({}), vec![], two));
    assert_eq!((family.slices.update.len(), family.slices.delete.len()), (1, 1), "one of two stays");
}

#[test]
fn a_slice_of_an_earlier_service_of_that_name_is_deleted_and_not_used_again() {
    let owner = json!([{ "apiVersion": "v1", "kind": "Service", "name": "web", "uid": "earlier", "controller": true }]);
    let foreign = slice("web-0", &[endpoint("a")], &json!({ "metadata": { "ownerReferences": owner } }));
    let family = one(run(&json!({}), vec![candidate("a", &json!({}))], vec![foreign]));
    assert_eq!((family.slices.create.len(), family.slices.update.len(), family.slices.delete.len()), (1, 0, 1));
}

#[test]
fn slices_of_a_family_that_the_service_does_not_have_are_deleted() {
    let foreign = slice("web-0", &[endpoint("a")], &json!({ "addressType": "IPv6" }));
    let plan = run(&json!({}), vec![], vec![foreign]);
    assert_eq!(plan.foreign.len(), 1);
    assert_eq!(one(plan).slices.create.len(), 1);
}

#[test]
fn a_pod_whose_node_does_not_exist_is_left_out_unless_all_addresses_are_published() {
    let lost = || vec![Candidate { node: None, ..candidate("a", &json!({})) }, candidate("b", &json!({}))];
    let plan = run(&json!({}), lost(), vec![]);
    assert_eq!(plan.without_node, [("a".to_owned(), "node-a".to_owned())]);
    assert_eq!(pods(&one(plan).slices.create[0].endpoints), ["b"]);
    let plan = run(&json!({ "publishNotReadyAddresses": true }), lost(), vec![]);
    assert!(plan.without_node.is_empty());
    assert_eq!(pods(&one(plan).slices.create[0].endpoints), ["a", "b"]);
}

#[test]
fn slices_have_the_labels_of_the_service() {
    let labels = |change: &Value, labels: Value| {
        let service = service("web", &spec(change));
        let mut object = json!({ "metadata": { "namespace": "shop", "name": "web", "labels": labels }, "spec": {} });
        merge(&mut object["spec"], &spec(change));
        drop(service);
        let service = <kcm_api::views::Service as kcm_api::View>::decode(&object.to_string()).unwrap();
        json!(labels_of(&service))
    };
    let own = json!({
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    });
    let with = |more: Value| {
        let mut all = own.clone();
        merge(&mut all, &more);
        all
    };
    let reserved = json!({ "kubernetes.io/service-name": "x", "service.kubernetes.io/headless": "x" });
    let headless = json!({ "clusterIP": "None" });
    for (name, change, given, expected) in [
        ("none", json!({}), json!({}), own.clone()),
        ("its own", json!({}), json!({ "a": "b" }), with(json!({ "a": "b" }))),
        ("reserved ones", json!({}), reserved.clone(), own.clone()),
        ("headless", headless.clone(), json!({}), with(json!({ "service.kubernetes.io/headless": "" }))),
        ("headless and reserved", headless, reserved, with(json!({ "service.kubernetes.io/headless": "" }))),
        (
            "an address that is not allocated yet",
            json!({ "clusterIP": "" }),
            json!({}),
            with(json!({ "service.kubernetes.io/headless": "" })),
        ),
    ] {
        assert_eq!(labels(&change, given), expected, "{name}");
    }
}

#[test]
fn endpoints_that_are_as_they_should_be_lead_to_no_write() {
    let existing = slice("web-0", &[endpoint("a")], &json!({}));
    let family = one(run(&json!({}), vec![candidate("a", &json!({}))], vec![existing]));
    assert_eq!((family.writes(), family.added, family.removed), (0, 0, 0));
}

#[test]
fn efficiency_counts_endpoints_slices_and_the_slices_that_would_do() {
    let existing = vec![slice("web-0", &[endpoint("a")], &json!({})), slice("web-1", &[endpoint("b")], &json!({}))];
    let plan = run(&json!({}), vec![candidate("a", &json!({})), candidate("b", &json!({}))], existing);
    assert_eq!((plan.efficiency.endpoints, plan.efficiency.slices, plan.efficiency.desired_slices), (2, 2, 1));
}
