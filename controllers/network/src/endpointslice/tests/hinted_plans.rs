//! Which hints the slices of a service should have, and the events about them.

use kcm_framework::api::views::{AddressType, Service};
use kcm_framework::events::Event as _;
use kcm_framework::informers::Lookup;
use serde_json::json;

use super::super::TOPOLOGY_MODE;
use super::super::events::ServiceEvent;
use super::super::hints::topology::ServiceHints;
use super::super::observe::{Candidate, Observed};
use super::super::plan::{Plan, Settings, plan};
use super::super::zones::Shares;
use super::{annotated_service, candidate, node, slice, zoned};
use crate::shared::slices::{Draft, ExistingSlice};
use crate::shared::tests::addresses;

/// Plans a service with the ready pods `a` and `b` in zones of these names, which have half of the CPUs each.
fn run(service: &Service, slices: Vec<ExistingSlice>, hints: &mut ServiceHints) -> Plan {
    let shares = Shares::from([("a".to_owned(), 0.5), ("b".to_owned(), 0.5)]);
    let settings = Settings { max_endpoints: 100, shares: Some(&shares), addresses: addresses() };
    let candidates = ["a", "b"]
        .map(|name| Candidate { node: Lookup::Found(node("node-a", name, &json!({}))), ..candidate(name, &json!({})) });
    let observed = Observed { pods: Vec::new(), candidates: candidates.into(), slices, invalid: Vec::new() };
    plan(service, observed, settings, hints)
}

/// The slice of both pods, with hints for their zones.
fn hinted_slice() -> ExistingSlice {
    slice("web-0", &[zoned("a", "a", "a"), zoned("b", "b", "b")], &json!({}))
}

/// Hints by topology of these families that are in force.
fn in_force(families: &[AddressType]) -> ServiceHints {
    let zones = || [("a".to_owned(), 1), ("b".to_owned(), 1)].into();
    ServiceHints { families: families.iter().map(|family| (*family, zones())).collect(), is_populated: true }
}

fn has_hints(draft: &Draft) -> bool {
    draft.endpoints.iter().any(|endpoint| endpoint.hints.is_some())
}

#[test]
fn the_hints_of_a_family_that_the_service_does_not_have_any_more_are_dropped() {
    let service = annotated_service(&json!({ TOPOLOGY_MODE: "Auto" }), &json!({}));
    let of_ipv6 = slice("web-6", &[zoned("a", "a", "a")], &json!({ "addressType": "IPv6" }));
    let mut hints = in_force(&[AddressType::IPv4, AddressType::IPv6]);
    let planned = run(&service, vec![hinted_slice(), of_ipv6], &mut hints);
    assert_eq!(planned.foreign.iter().map(|slice| slice.metadata.key.name()).collect::<Vec<_>>(), ["web-6"]);
    assert_eq!(hints, in_force(&[AddressType::IPv4]));
    let [family] = planned.families.as_slice() else { panic!("there is one family") };
    assert_eq!((family.family, family.writes()), (AddressType::IPv4, 0));
}

#[test]
fn hints_by_topology_end_with_the_annotation_and_an_event_says_so_once() {
    let service = annotated_service(&json!({}), &json!({}));
    let mut hints = in_force(&[AddressType::IPv4]);
    let planned = run(&service, vec![hinted_slice()], &mut hints);
    let [family] = planned.families.as_slice() else { panic!("there is one family") };
    assert_eq!(family.events, [ServiceEvent::HintsDisabled(AddressType::IPv4)]);
    assert_eq!(family.events[0].text().reason, "TopologyAwareHintsDisabled");
    assert_eq!((family.slices.update.len(), has_hints(&family.slices.update[0])), (1, false));
    assert_eq!(hints, ServiceHints::default());

    let without = slice("web-0", &[zoned("a", "a", ""), zoned("b", "b", "")], &json!({}));
    let planned = run(&service, vec![without], &mut hints);
    assert_eq!((planned.families[0].writes(), planned.families[0].events.len()), (0, 0));
}

#[test]
fn a_traffic_distribution_that_is_unknown_removes_hints() {
    for (distribution, is_updated) in [("PreferClose", false), ("PreferFar", true)] {
        let service = annotated_service(&json!({}), &json!({ "trafficDistribution": distribution }));
        let planned = run(&service, vec![hinted_slice()], &mut ServiceHints::default());
        let updated: Vec<bool> = planned.families[0].slices.update.iter().map(has_hints).collect();
        assert_eq!(updated, if is_updated { vec![false] } else { vec![] }, "{distribution}");
    }
}
