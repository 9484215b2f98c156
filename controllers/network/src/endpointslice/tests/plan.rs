//! Which slices a service should have.

use kcm_framework::api::View as _;
use kcm_framework::api::views::Service;
use kcm_framework::informers::Lookup;
use serde_json::{Value, json};

use super::super::hints::distribution::TrafficDistribution;
use super::super::hints::topology::ServiceHints;
use super::super::observe::{Candidate, Observed};
use super::super::plan::{FamilyPlan, Plan, Settings, labels_of, plan};
use super::{annotated_service, candidate, endpoint, pods, slice, spec};
use crate::shared::pods::can_be_endpoint;
use crate::shared::slices::{Draft, ExistingSlice, TargetRef};
use crate::shared::tests::{addresses, merge, service};

fn run(change: &Value, candidates: Vec<Candidate>, slices: Vec<ExistingSlice>) -> Plan {
    let settings = Settings { max_endpoints: 100, shares: None, addresses: addresses() };
    let observed = Observed { pods: Vec::new(), candidates, slices, invalid: Vec::new() };
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
fn pods_of_one_address_are_endpoints_each_unless_one_has_ended() {
    let of = |endpoints: Vec<Candidate>| {
        let family = one(run(&json!({}), endpoints, vec![]));
        let endpoints = family.slices.create.into_iter().flat_map(|slice| slice.endpoints);
        let name = |target: TargetRef| target.name;
        endpoints.map(|it| (it.target_ref.map_or_else(String::new, name), it.addresses)).collect::<Vec<_>>()
    };
    let row = |name: &str| (name.to_owned(), vec!["10.0.0.1".to_owned()]);
    let two = vec![candidate("a", &json!({})), candidate("b", &json!({}))];
    assert_eq!(of(two), [row("a"), row("b")], "two ready pods");
    let ended = candidate("a", &json!({ "status": { "phase": "Succeeded" } }));
    let all = [ended, candidate("b", &json!({}))];
    let can_be = |candidate: &Candidate| can_be_endpoint(&candidate.pod, addresses().of(&candidate.pod));
    assert_eq!(of(all.into_iter().filter(can_be).collect()), [row("b")], "a completed and a ready pod");
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
fn a_pod_with_an_address_is_an_endpoint_until_it_has_ended() {
    let phase = |phase: &str| json!({ "status": { "phase": phase } });
    let without_address = json!({ "status": { "phase": "Pending", "podIPs": [] } });
    for (name, change, expected) in [
        ("pending", phase("Pending"), true),
        ("running", phase("Running"), true),
        ("unknown", phase("Unknown"), true),
        ("succeeded", phase("Succeeded"), false),
        ("failed", phase("Failed"), false),
        ("pending without an address", without_address, false),
    ] {
        let candidate = candidate("a", &change);
        assert_eq!(can_be_endpoint(&candidate.pod, addresses().of(&candidate.pod)), expected, "{name}");
        if expected {
            let family = one(run(&json!({}), vec![candidate], vec![]));
            let conditions = &family.slices.create[0].endpoints[0].conditions;
            assert_eq!((conditions.ready, conditions.serving), (Some(true), Some(true)), "{name}");
        }
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
        ("not said, with an address of IPv4", json!({ "ipFamilies": [] }), vec![v4.clone()]),
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
fn the_ports_of_a_new_slice_have_upstreams_order_and_those_of_an_existing_one_stay() {
    let port = |name: &str, number: i32| json!({ "name": name, "protocol": "TCP", "port": number });
    let of_service =
        |name: &str, number: i32| json!({ "name": name, "protocol": "TCP", "port": number, "targetPort": number });
    let change = json!({ "ports": [of_service("http", 80), of_service("https", 443)] });
    let pods = || vec![candidate("a", &json!({}))];
    let family = one(run(&change, pods(), vec![]));
    assert_eq!(json_of(&family.slices.create[0])["ports"], json!([port("https", 443), port("http", 80)]));
    for ports in [[port("http", 80), port("https", 443)], [port("https", 443), port("http", 80)]] {
        let existing = slice("web-0", &[endpoint("a")], &json!({ "ports": ports }));
        assert_eq!(one(run(&change, pods(), vec![existing])).writes(), 0, "{ports:?}");
    }
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

/// Upstream's `TestPlaceHolderSliceCompare`, as far as its rows are slices of the API server.
#[test]
fn an_empty_slice_is_kept_if_only_its_name_or_its_age_differs() {
    let metadata = |change: Value| json!({ "ports": [], "endpoints": [], "metadata": change });
    let six = json!({ "ports": [], "endpoints": [], "addressType": "IPv6" });
    for (name, change, (created, updated, unchanged, foreign)) in [
        ("Both are empty and non-nil", metadata(json!({})), (0, 0, 1, 0)),
        ("Only ObjectMeta.Name has diff", metadata(json!({ "name": "bar" })), (0, 0, 1, 0)),
        ("Only ObjectMeta.Labels has diff", metadata(json!({ "labels": { "bar": "true" } })), (0, 1, 0, 0)),
        ("Creation time is different", metadata(json!({ "creationTimestamp": "2026-01-02T12:00:00Z" })), (0, 0, 1, 0)),
        ("Different except for ObjectMeta", six, (1, 0, 0, 1)),
    ] {
        let plan = run(&json!({}), vec![], vec![slice("web-0", &[], &change)]);
        let found_foreign = plan.foreign.len();
        let FamilyPlan { slices, .. } = one(plan);
        let found = (slices.create.len(), slices.update.len(), slices.unchanged.len(), found_foreign);
        assert_eq!(found, (created, updated, unchanged, foreign), "{name}");
    }
}

/// Upstream's case is `TestReconcileEndpointSlicesReplaceDeprecated`.
#[test]
fn slices_of_an_address_type_that_is_no_family_are_replaced_and_their_endpoints_packed_anew() {
    let names = |range: std::ops::Range<usize>| range.map(|number| format!("pod-{number:03}")).collect::<Vec<_>>();
    let all = names(0..130);
    for address_type in ["IP", "FQDN"] {
        let old = |name: &str, pods: &[String]| {
            let endpoints: Vec<_> = pods.iter().map(|pod| endpoint(pod)).collect();
            slice(name, &endpoints, &json!({ "addressType": address_type }))
        };
        let slices = vec![old("web-0", &all[..80]), old("web-1", &all[80..])];
        let candidates = all.iter().map(|pod| candidate(pod, &json!({}))).collect();
        let plan = run(&json!({}), candidates, slices);
        assert_eq!(plan.foreign.len(), 2, "{address_type}");
        let family = one(plan);
        let mut lengths: Vec<_> = family.slices.create.iter().map(|slice| slice.endpoints.len()).collect();
        lengths.sort_unstable();
        assert_eq!((lengths, family.writes()), (vec![30, 100], 2), "{address_type}");
    }
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
    let lost = || vec![Candidate { node: Lookup::Absent, ..candidate("a", &json!({})) }, candidate("b", &json!({}))];
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
        let service =
            <kcm_framework::api::views::Service as kcm_framework::api::View>::decode(&object.to_string()).unwrap();
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
    let dual = json!({ "ipFamilies": ["IPv4", "IPv6"] });
    for (name, pods, endpoints) in [("one empty slice", vec![candidate("a", &json!({}))], 1), ("two", vec![], 0)] {
        let plan = run(&dual, pods, vec![]);
        let efficiency = plan.efficiency;
        assert_eq!((efficiency.endpoints, efficiency.slices, efficiency.desired_slices), (endpoints, 2, 2), "{name}");
    }
}

#[test]
fn topology_comes_before_the_distribution_and_its_old_annotation_before_the_new_one() {
    let (old, new) = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode");
    for (name, annotations, distribution, expected) in [
        ("nothing", json!({}), None, (false, None)),
        ("Auto", json!({ new: "Auto" }), None, (true, None)),
        ("auto", json!({ new: "auto" }), None, (true, None)),
        ("another spelling", json!({ new: "aUto" }), None, (false, None)),
        ("Disabled", json!({ new: "Disabled" }), None, (false, None)),
        ("the old annotation", json!({ old: "Auto" }), None, (true, None)),
        ("the old one wins", json!({ old: "Disabled", new: "Auto" }), None, (false, None)),
        ("the old one wins with auto", json!({ old: "auto", new: "Disabled" }), None, (true, None)),
        ("a distribution", json!({}), Some("PreferClose"), (false, Some("PreferClose"))),
        ("an unknown distribution", json!({}), Some("PreferFar"), (false, None)),
        ("both", json!({ new: "Auto" }), Some("PreferClose"), (true, None)),
        ("both, disabled", json!({ new: "Disabled" }), Some("PreferSameNode"), (false, Some("PreferSameNode"))),
    ] {
        let service = annotated_service(&annotations, &json!({ "trafficDistribution": distribution }));
        let settings = Settings { max_endpoints: 100, shares: None, addresses: addresses() };
        let observed = Observed { pods: Vec::new(), candidates: Vec::new(), slices: Vec::new(), invalid: Vec::new() };
        let plan = plan(&service, observed, settings, &mut ServiceHints::default());
        assert_eq!((plan.by_topology, plan.distribution.map(TrafficDistribution::as_str)), expected, "{name}");
    }
}

#[test]
fn ports_have_the_application_protocol_and_one_number_may_have_two_protocols() {
    let port = |name: &str, protocol: &str| json!({ "name": name, "protocol": protocol, "port": 53, "targetPort": 53, "appProtocol": "example.com/dns" });
    let change = json!({ "ports": [port("dns-tcp", "TCP"), port("dns", "UDP")] });
    let family = one(run(&change, vec![candidate("a", &json!({}))], vec![]));
    let mut ports = json_of(&family.slices.create[0])["ports"].as_array().cloned().unwrap();
    ports.sort_by_key(|port| port["protocol"].to_string());
    let expected = |name: &str, protocol: &str| json!({ "name": name, "protocol": protocol, "port": 53, "appProtocol": "example.com/dns" });
    assert_eq!(ports, [expected("dns-tcp", "TCP"), expected("dns", "UDP")]);
}

#[test]
fn a_headless_service_without_ports_has_endpoints_without_ports() {
    let change = json!({ "clusterIP": "None", "ports": [] });
    let family = one(run(&change, vec![candidate("a", &json!({}))], vec![]));
    assert_eq!((pods(&family.slices.create[0].endpoints), family.slices.create.len()), (vec!["a"], 1));
    assert_eq!(json_of(&family.slices.create[0])["ports"], json!([]));
    let existing = slice("web-0", &[endpoint("a")], &json!({ "ports": null }));
    assert_eq!(one(run(&change, vec![candidate("a", &json!({}))], vec![existing])).writes(), 0);
}

#[test]
fn a_slice_is_written_where_labels_of_the_service_differ() {
    let (headless, managed_by) = ("service.kubernetes.io/headless", "endpointslice.kubernetes.io/managed-by");
    for (name, of_service, of_slice, is_written) in [
        ("none", json!({}), json!({}), false),
        ("the same", json!({ "a": "b" }), json!({ "a": "b" }), false),
        ("one less", json!({ "a": "b" }), json!({}), true),
        ("one more", json!({}), json!({ "a": "b" }), true),
        ("another value", json!({ "a": "c" }), json!({ "a": "b" }), true),
        ("a reserved one of the slice", json!({}), json!({ headless: "" }), false),
        ("a reserved one of the service", json!({ managed_by: "me" }), json!({}), false),
    ] {
        let metadata = json!({ "namespace": "shop", "name": "web", "uid": "uid-web", "labels": of_service });
        let service = json!({ "metadata": metadata, "spec": spec(&json!({})) });
        let service = Service::decode(&service.to_string()).unwrap();
        let settings = Settings { max_endpoints: 100, shares: None, addresses: addresses() };
        let slices = vec![slice("web-0", &[endpoint("a")], &json!({ "metadata": { "labels": of_slice } }))];
        let observed =
            Observed { pods: Vec::new(), candidates: vec![candidate("a", &json!({}))], slices, invalid: Vec::new() };
        let plan = plan(&service, observed, settings, &mut ServiceHints::default());
        assert_eq!(one(plan).writes(), usize::from(is_written), "{name}");
    }
}

#[test]
fn an_endpoint_leaves_with_its_node() {
    let lost = |name: &str| Candidate { node: Lookup::Absent, ..candidate(name, &json!({})) };
    let existing = || vec![slice("web-0", &[endpoint("a"), endpoint("b")], &json!({}))];
    let family = one(run(&json!({}), vec![candidate("a", &json!({})), lost("b")], existing()));
    assert_eq!((pods(&family.slices.update[0].endpoints), family.removed), (vec!["a"], 1));
    let family = one(run(&json!({}), vec![lost("a"), lost("b")], existing()));
    assert_eq!(json_of(&family.slices.update[0]), json!({ "endpoints": [], "ports": [] }), "the placeholder");
    assert_eq!((family.writes(), family.removed), (1, 2));
}
