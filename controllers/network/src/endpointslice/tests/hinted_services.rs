//! Which services changes of nodes enqueue.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::AddressType;
use kcm_framework::informers::Change;
use serde_json::json;

use super::super::hinted_services::HintedServices;
use super::super::hints::topology::ServiceHints;
use super::node;

fn hints(zones: &[(&str, usize)]) -> ServiceHints {
    let zones = zones.iter().map(|(zone, count)| ((*zone).to_owned(), *count)).collect();
    ServiceHints { families: [(AddressType::IPv4, zones)].into(), is_populated: true }
}

fn two_zones() -> HintedServices {
    let hinted = HintedServices::default();
    for zone in ["a", "b"] {
        hinted.node_changed(&Change::Added(node(zone, zone, &json!({}))));
    }
    hinted
}

fn web() -> ObjectKey {
    ObjectKey::namespaced("shop", "web")
}

#[test]
fn a_change_of_nodes_enqueues_the_services_that_have_too_few_endpoints_in_a_zone() {
    let hinted = two_zones();
    let (shares, none) = hinted.get(&web());
    assert_eq!(none, ServiceHints::default());
    assert!(!hinted.set(&web(), hints(&[("a", 1), ("b", 1)]), shares.as_deref()));
    let unready = Change::Added(node("c", "c", &json!({ "status": { "conditions": [] } })));
    assert!(hinted.node_changed(&unready).is_empty());
    let third = Change::Added(node("d", "d", &json!({})));
    assert_eq!(hinted.node_changed(&third), [web()]);
    assert_eq!(hinted.get(&web()).1, hints(&[("a", 1), ("b", 1)]), "they stay until the service is planned");
    hinted.forget(&web());
    assert!(hinted.node_changed(&Change::Added(node("e", "e", &json!({})))).is_empty());
}

#[test]
fn a_service_whose_nodes_change_while_it_is_planned_is_planned_again() {
    for (name, added, zones, is_outdated) in [
        ("nothing changes", None, vec![("a", 1), ("b", 1)], false),
        ("a zone without an endpoint", Some("c"), vec![("a", 1), ("b", 1)], true),
        ("enough endpoints in each zone", Some("b"), vec![("a", 1), ("b", 2)], false),
        ("no hints", Some("c"), vec![], false),
    ] {
        let hinted = two_zones();
        // The plan begins, and no lock is held.
        let (shares, _) = hinted.get(&web());
        if let Some(zone) = added {
            assert!(hinted.node_changed(&Change::Added(node("new", zone, &json!({})))).is_empty());
        }
        assert_eq!(hinted.set(&web(), hints(&zones), shares.as_deref()), is_outdated, "{name}");
    }
}
