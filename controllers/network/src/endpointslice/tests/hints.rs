//! Hints by traffic distribution and by topology.

use kcm_framework::api::views::AddressType;
use kcm_framework::events::Event as _;
use serde_json::json;

use super::super::events::ServiceEvent;
use super::super::hints::FamilySlices;
use super::super::hints::allocation::{Allocation, Obstacle, ZoneCounts, allocations, is_overloaded, transfers};
use super::super::hints::distribution::TrafficDistribution;
use super::super::hints::topology::{ServiceHints, set_hints};
use super::super::zones::Shares;
use super::{endpoint, slice, unready, zoned};
use crate::shared::slices::{Conditions, Draft, Endpoint, Hint, Hints};

fn shares(zones: &[(&str, f64)]) -> Shares {
    zones.iter().map(|(zone, share)| ((*zone).to_owned(), *share)).collect()
}

fn counts(zones: &[(&str, usize)]) -> ZoneCounts {
    zones.iter().map(|(zone, count)| ((*zone).to_owned(), *count)).collect()
}

fn unchanged(slices: &[Vec<Endpoint>]) -> FamilySlices {
    let slices = slices.iter().enumerate();
    let unchanged = slices.map(|(at, endpoints)| slice(&format!("web-{at}"), endpoints, &json!({}))).collect();
    FamilySlices { unchanged, ..FamilySlices::default() }
}

fn of_unknown_readiness(endpoint: Endpoint) -> Endpoint {
    Endpoint { conditions: Conditions::default(), ..endpoint }
}

/// The zones for which the endpoints of a draft have hints; `-` for none.
fn hinted(draft: &Draft) -> Vec<String> {
    let names = |hints: &[Hint]| hints.iter().map(|hint| hint.name.clone()).collect::<Vec<_>>().join("+");
    let shown = |hints: &Hints| {
        let (zones, nodes) = (names(&hints.for_zones), names(&hints.for_nodes));
        if nodes.is_empty() { zones } else { format!("{zones}/{nodes}") }
    };
    draft.endpoints.iter().map(|endpoint| endpoint.hints.as_ref().map_or("-".to_owned(), shown)).collect()
}

#[test]
fn a_traffic_distribution_keeps_traffic_in_the_zone_or_on_the_node() {
    use TrafficDistribution::{Close, SameNode, SameZone};
    let elsewhere = Endpoint { node_name: None, ..zoned("c", "", "") };
    let endpoints = || vec![endpoint("a"), unready(endpoint("b")), elsewhere.clone()];
    for (distribution, expected) in
        [(Close, ["a", "-", "-"]), (SameZone, ["a", "-", "-"]), (SameNode, ["a/node-a", "-", "-"])]
    {
        let mut slices = FamilySlices { create: vec![Draft::new(Vec::new(), endpoints())], ..FamilySlices::default() };
        distribution.set_hints(&mut slices);
        assert_eq!(hinted(&slices.create[0]), expected, "{distribution:?}");
        assert_eq!(TrafficDistribution::named(distribution.as_str()), Some(distribution));
    }
    assert_eq!(TrafficDistribution::named("PreferFar"), None);
}

#[test]
fn only_slices_with_wrong_hints_of_ready_endpoints_are_updated_for_a_distribution() {
    for (name, endpoint, is_updated) in [
        ("the right hint", zoned("a", "a", "a"), false),
        ("no hint", zoned("a", "a", ""), true),
        ("another zone", zoned("a", "a", "b"), true),
        ("a hint without a zone", zoned("a", "", "b"), true),
        ("no zone and no hint", zoned("a", "", ""), false),
        ("an endpoint that is not ready", unready(zoned("a", "a", "b")), false),
        ("an endpoint whose readiness is unknown", of_unknown_readiness(zoned("a", "a", "b")), false),
    ] {
        let mut slices = unchanged(&[vec![endpoint]]);
        TrafficDistribution::SameZone.set_hints(&mut slices);
        assert_eq!(
            (slices.update.len(), slices.unchanged.len()),
            (usize::from(is_updated), usize::from(!is_updated)),
            "{name}"
        );
    }
}

#[test]
fn hints_are_removed_where_nothing_asks_for_them() {
    let mut slices = unchanged(&[vec![zoned("a", "a", "a"), zoned("b", "a", "")], vec![zoned("c", "a", "")]]);
    slices.create.push(Draft::new(Vec::new(), vec![zoned("d", "a", "b")]));
    slices.remove_hints();
    assert_eq!((slices.update.len(), slices.unchanged.len()), (1, 1));
    assert_eq!((hinted(&slices.update[0]), hinted(&slices.create[0])), (vec!["-".to_owned(); 2], vec!["-".to_owned()]));
}

#[test]
fn zones_get_endpoints_for_their_share() {
    let three = shares(&[("a", 0.25), ("b", 0.25), ("c", 0.5)]);
    let of = |minimum, maximum, desired| Allocation { minimum, maximum, desired };
    let planned = allocations(Some(&three), 12).unwrap();
    // a and b: 3 / 1.2 = 2.5; c: 6 / 1.2 = 5; 1 of 12 is spare.
    assert_eq!(planned.len(), 3);
    for ((zone, planned), expected) in planned.iter().zip([of(3, 4, 3.0), of(3, 4, 3.0), of(5, 6, 6.0)]) {
        assert_eq!((planned.minimum, planned.maximum), (expected.minimum, expected.maximum), "{zone}");
        assert!((planned.desired - expected.desired).abs() < 1e-9, "{zone}: {planned:?}");
    }
    for (name, shares, endpoints, obstacle) in [
        ("no shares", None, 12, Obstacle::InsufficientNodeInformation),
        ("fewer endpoints than zones", Some(&three), 2, Obstacle::InsufficientEndpoints { endpoints: 2, zones: 3 }),
        ("minima of 1, 1 and 2 are more than 3", Some(&three), 3, Obstacle::Overload { endpoints: 3, zones: 3 }),
    ] {
        assert_eq!(allocations(shares, endpoints), Err(obstacle), "{name}");
    }
}

#[test]
fn zones_with_too_many_endpoints_give_to_those_with_too_few() {
    let zones = |zones: &[(&'static str, f64)]| {
        let allocation = |desired| Allocation { minimum: 0, maximum: 99, desired };
        zones.iter().map(|(zone, desired)| (*zone, allocation(*desired))).collect()
    };
    for (name, desired, now, giving, receiving) in [
        ("in balance", vec![("a", 2.0), ("b", 2.0)], counts(&[("a", 2), ("b", 2)]), vec![], vec![]),
        ("one too many", vec![("a", 2.0), ("b", 2.0)], counts(&[("a", 3), ("b", 1)]), vec![("a", 1)], vec![("b", 1)]),
        ("less than half an endpoint", vec![("a", 2.4), ("b", 1.6)], counts(&[("a", 2), ("b", 2)]), vec![], vec![]),
        ("half an endpoint on both sides", vec![("a", 1.5), ("b", 1.5)], counts(&[("a", 2), ("b", 1)]), vec![], vec![]),
        (
            "two zones give to one",
            vec![("a", 2.4), ("b", 1.3), ("c", 5.3)],
            counts(&[("a", 4), ("b", 2), ("c", 3)]),
            vec![("a", 1), ("b", 1)],
            vec![("c", 2)],
        ),
        (
            "of two zones that lack less than an endpoint, the one that lacks more receives",
            vec![("a", 2.0), ("b", 1.4), ("c", 1.6)],
            counts(&[("a", 3), ("b", 1), ("c", 1)]),
            vec![("a", 1)],
            vec![("c", 1)],
        ),
        (
            "a zone that has no share any more gives and receives nothing",
            vec![("a", 2.0), ("b", 2.0)],
            counts(&[("a", 2), ("b", 1), ("gone", 9)]),
            vec![],
            vec![],
        ),
    ] {
        let planned = transfers(&zones(&desired), &now);
        assert_eq!(planned, (giving.into_iter().collect(), receiving.into_iter().collect()), "{name}");
    }
}

#[test]
fn a_service_is_overloaded_where_a_zone_has_less_than_its_minimum() {
    let half = shares(&[("a", 0.5), ("b", 0.5)]);
    for (name, hinted, shares, expected) in [
        ("no hints", counts(&[]), Some(&half), false),
        ("no shares", counts(&[("a", 1)]), None, true),
        ("in balance", counts(&[("a", 5), ("b", 5)]), Some(&half), false),
        ("at the minimum", counts(&[("a", 7), ("b", 5)]), Some(&half), false),
        ("below it", counts(&[("a", 8), ("b", 4)]), Some(&half), true),
        ("a zone without endpoints", counts(&[("a", 5)]), Some(&half), true),
        // Endpoints of other zones count in the total: of 10 endpoints each zone needs 5, of 14 it needs 6.
        ("a zone without a share", counts(&[("a", 5), ("b", 5), ("gone", 1)]), Some(&half), false),
        ("much in a zone without a share", counts(&[("a", 5), ("b", 5), ("gone", 4)]), Some(&half), true),
    ] {
        assert_eq!(is_overloaded(&hinted, shares), expected, "{name}");
    }
}

#[test]
fn topology_hints_follow_the_shares_and_stay_where_they_can() {
    let half = shares(&[("a", 0.5), ("b", 0.5)]);
    let mut hints = ServiceHints::default();
    // Three of four endpoints are in zone a: one of them serves zone b.
    let endpoints = vec![zoned("1", "a", ""), zoned("2", "a", ""), zoned("3", "a", ""), zoned("4", "b", "")];
    let mut slices = FamilySlices { create: vec![Draft::new(Vec::new(), endpoints)], ..FamilySlices::default() };
    assert_eq!(set_hints(&mut slices, AddressType::IPv4, Some(&half), &mut hints), Ok(true));
    assert_eq!(hinted(&slices.create[0]), ["b", "a", "a", "b"]);
    assert_eq!(hints.families[&AddressType::IPv4], counts(&[("a", 2), ("b", 2)]));

    // They are all right: nothing is written.
    let mut slices = unchanged(&[slices.create[0].endpoints.clone()]);
    assert_eq!(set_hints(&mut slices, AddressType::IPv4, Some(&half), &mut hints), Ok(false));
    assert_eq!((slices.update.len(), slices.unchanged.len()), (0, 1));

    // A zone that has no share any more.
    let other = shares(&[("a", 0.5), ("c", 0.5)]);
    assert_eq!(set_hints(&mut slices, AddressType::IPv4, Some(&other), &mut hints), Ok(false));
    assert_eq!((slices.update.len(), slices.unchanged.len()), (1, 0));
    // The endpoint in zone b keeps its zone; of the three in zone a one serves zone c.
    assert_eq!(hints.families[&AddressType::IPv4], counts(&[("a", 2), ("b", 1), ("c", 1)]));
}

#[test]
fn topology_hints_are_removed_where_they_are_not_possible() {
    let half = shares(&[("a", 0.5), ("b", 0.5)]);
    for (name, endpoints, shares, obstacle) in [
        ("an endpoint without a zone", vec![zoned("1", "a", "a"), zoned("2", "", "")], Some(&half), Obstacle::NoZone),
        (
            "too few endpoints",
            vec![zoned("1", "a", "a"), unready(zoned("2", "b", ""))],
            Some(&half),
            Obstacle::InsufficientEndpoints { endpoints: 1, zones: 2 },
        ),
        ("no shares", vec![zoned("1", "a", "a"), zoned("2", "b", "b")], None, Obstacle::InsufficientNodeInformation),
    ] {
        let mut hints =
            ServiceHints { is_populated: true, families: [(AddressType::IPv4, counts(&[("a", 1)]))].into() };
        let mut slices = unchanged(&[endpoints]);
        assert_eq!(set_hints(&mut slices, AddressType::IPv4, shares, &mut hints), Err(obstacle), "{name}");
        assert_eq!(hinted(&slices.update[0]), ["-", "-"], "{name}");
        assert_eq!(hints, ServiceHints::default(), "{name}");
        // And it is written once.
        let mut slices = unchanged(&[slices.update.remove(0).endpoints]);
        assert_eq!(set_hints(&mut slices, AddressType::IPv4, shares, &mut hints), Err(obstacle), "{name}");
        assert_eq!((slices.update.len(), slices.unchanged.len()), (0, 1), "{name}");
    }
}

#[test]
fn events_say_what_upstreams_say() {
    let (endpoints, zones) = (2, 3);
    for (event, reason, message) in [
        (
            ServiceEvent::HintsEnabled(AddressType::IPv4),
            "TopologyAwareHintsEnabled",
            "Topology Aware Hints has been enabled, addressType: IPv4",
        ),
        (
            ServiceEvent::HintsDisabled(AddressType::IPv6),
            "TopologyAwareHintsDisabled",
            "Topology Aware Hints has been disabled, addressType: IPv6",
        ),
        (
            ServiceEvent::NoHints(AddressType::IPv4, Obstacle::InsufficientEndpoints { endpoints, zones }),
            "TopologyAwareHintsDisabled",
            "Insufficient number of endpoints (2 endpoints, 3 zones), addressType: IPv4",
        ),
        (
            ServiceEvent::NoHints(AddressType::IPv4, Obstacle::Overload { endpoints, zones }),
            "TopologyAwareHintsDisabled",
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (2 endpoints, \
             3 zones), addressType: IPv4",
        ),
        (
            ServiceEvent::NoHints(AddressType::IPv4, Obstacle::NoZone),
            "TopologyAwareHintsDisabled",
            "One or more endpoints do not have a zone specified, addressType: IPv4",
        ),
    ] {
        let text = event.text();
        assert_eq!((&*text.reason, &*text.message), (reason, message));
    }
}

#[test]
fn prefer_same_node_without_a_zone_hints_the_node_alone() {
    let mut slices = unchanged(&[vec![zoned("a", "", "")]]);
    TrafficDistribution::SameNode.set_hints(&mut slices);
    assert_eq!(hinted(&slices.update[0]), ["/node-a"]);
    // The hint of the node is not that of the other distribution.
    let mut slices = unchanged(&[slices.update.remove(0).endpoints]);
    TrafficDistribution::SameZone.set_hints(&mut slices);
    assert_eq!(hinted(&slices.update[0]), ["-"]);
}

#[test]
fn of_slices_with_more_endpoints_than_a_zone_may_have_the_first_stays() {
    // 4 / 2 / 1.2 is more than 1: each zone has two.
    let half = shares(&[("a", 0.5), ("b", 0.5)]);
    let slice = |first: &str, second: &str| vec![zoned(first, "a", "a"), zoned(second, "a", "a")];
    let mut slices = unchanged(&[slice("1", "2"), slice("3", "4")]);
    let mut hints = ServiceHints::default();
    assert_eq!(set_hints(&mut slices, AddressType::IPv4, Some(&half), &mut hints), Ok(true));
    let unchanged: Vec<_> = slices.unchanged.iter().map(|slice| slice.object.metadata.key.name()).collect();
    assert_eq!(unchanged, ["web-0"]);
    assert_eq!(slices.update.iter().map(hinted).collect::<Vec<_>>(), [["b", "b"]]);
    assert_eq!(hints.families[&AddressType::IPv4], counts(&[("a", 2), ("b", 2)]));
}

#[test]
fn an_endpoint_counts_for_each_zone_that_it_has_a_hint_for() {
    // 7 / 2 / 1.2 is more than 2: each zone has three at least, and four at most.
    let half = shares(&[("a", 0.5), ("b", 0.5)]);
    let for_both = || {
        let for_zones = ["a", "b"].map(|zone| Hint { name: zone.to_owned() }).to_vec();
        Endpoint { hints: Some(Hints { for_zones, for_nodes: Vec::new() }), ..zoned("1", "a", "") }
    };
    for (name, in_a, in_b, is_updated, expected) in [
        ("as many as each zone may have", 3, 3, false, counts(&[("a", 4), ("b", 4)])),
        ("one more than a zone may have", 4, 2, true, counts(&[("a", 4), ("b", 3)])),
    ] {
        let of_zone =
            |zone: &'static str, count: usize| (0..count).map(move |at| zoned(&format!("{zone}{at}"), zone, zone));
        let endpoints = [for_both()].into_iter().chain(of_zone("a", in_a)).chain(of_zone("b", in_b)).collect();
        let mut slices = unchanged(&[endpoints]);
        let mut hints = ServiceHints::default();
        assert_eq!(set_hints(&mut slices, AddressType::IPv4, Some(&half), &mut hints), Ok(true), "{name}");
        assert_eq!(slices.update.len(), usize::from(is_updated), "{name}");
        assert_eq!(hints.families[&AddressType::IPv4], expected, "{name}");
    }
}

#[test]
fn an_endpoint_whose_readiness_is_unknown_has_no_hint_and_does_not_count() {
    let half = shares(&[("a", 0.5), ("b", 0.5)]);
    let unknown = || of_unknown_readiness(zoned("3", "", ""));
    let mut hints = ServiceHints::default();
    let endpoints = vec![zoned("1", "a", ""), zoned("2", "b", ""), unknown()];
    let mut slices = FamilySlices { create: vec![Draft::new(Vec::new(), endpoints)], ..FamilySlices::default() };
    assert_eq!(set_hints(&mut slices, AddressType::IPv4, Some(&half), &mut hints), Ok(true));
    assert_eq!(hinted(&slices.create[0]), ["a", "b", "-"]);
    assert_eq!(hints.families[&AddressType::IPv4], counts(&[("a", 1), ("b", 1)]));
    let mut slices = unchanged(&[slices.create.remove(0).endpoints]);
    assert_eq!(set_hints(&mut slices, AddressType::IPv4, Some(&half), &mut hints), Ok(false));
    assert_eq!((slices.update.len(), slices.unchanged.len()), (0, 1), "the slice stays");
    let mut slices = unchanged(&[vec![zoned("1", "a", "a"), unknown()]]);
    let too_few = Obstacle::InsufficientEndpoints { endpoints: 1, zones: 2 };
    assert_eq!(set_hints(&mut slices, AddressType::IPv4, Some(&half), &mut hints), Err(too_few));
}
