//! Which Node holds which blocks.

use kcm_framework::api::Uid;

use super::cidr;
use crate::node_ipam::allocator::{Allocator, Exhausted};
use crate::node_ipam::configuration::Clusters;

fn allocator(pods: &[(&str, u8)], services: &[&str]) -> Allocator {
    Allocator::new(&Clusters {
        pods: pods.iter().map(|(text, length)| (cidr(text), *length)).collect(),
        services: services.iter().map(|text| cidr(text)).collect(),
    })
}

/// Reserves for a Node, and returns the pod CIDRs as text.
fn reserve(allocator: &mut Allocator, node: &str) -> Result<String, Exhausted> {
    let reservation = allocator.reserve(&Uid::from(node))?;
    Ok(reservation.cidrs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
}

#[test]
fn s8_service_cidrs_are_never_given_to_nodes() {
    for (name, services, first) in [
        ("none", &[][..], "10.244.0.0/24"),
        ("within", &["10.244.0.0/23"][..], "10.244.2.0/24"),
        ("smaller than a block", &["10.244.0.128/28"][..], "10.244.1.0/24"),
        ("elsewhere", &["10.96.0.0/12"][..], "10.244.0.0/24"),
        ("of the other family", &["fd00::/108"][..], "10.244.0.0/24"),
    ] {
        let mut set = allocator(&[("10.244.0.0/16", 24)], services);
        assert_eq!(reserve(&mut set, "a").as_deref(), Ok(first), "{name}");
    }
    let mut around = allocator(&[("10.244.0.0/16", 24)], &["10.0.0.0/8"]);
    assert_eq!(reserve(&mut around, "a"), Err(Exhausted { index: 0 }));
}

#[test]
fn t1_b2_a_node_is_offered_its_reservation_again_until_it_is_settled() {
    let mut set = allocator(&[("10.244.0.0/16", 24)], &[]);
    for _ in 0..3 {
        assert_eq!(reserve(&mut set, "a").as_deref(), Ok("10.244.0.0/24"));
    }
    assert_eq!(reserve(&mut set, "b").as_deref(), Ok("10.244.1.0/24"));
    // It got another one, such as from a predecessor.
    set.occupy(&Uid::from("a"), &[cidr("10.244.9.0/24")]);
    let free = |set: &mut Allocator, text: &str| {
        let span = set.blocks()[0].span(cidr(text)).unwrap();
        let before = set.blocks()[0].occupied();
        set.blocks()[0].hold(span);
        let is_free = set.blocks()[0].occupied() > before;
        set.blocks()[0].release(span);
        is_free
    };
    assert!(free(&mut set, "10.244.0.0/24") && !free(&mut set, "10.244.9.0/24") && !free(&mut set, "10.244.1.0/24"));
}

#[test]
fn t2_the_exhaustion_of_one_family_does_not_drain_the_other() {
    let mut set = allocator(&[("10.244.0.0/16", 24), ("fd00::/64", 64)], &[]);
    assert_eq!(reserve(&mut set, "a").as_deref(), Ok("10.244.0.0/24 fd00::/64"));
    for _ in 0..300 {
        assert_eq!(reserve(&mut set, "b"), Err(Exhausted { index: 1 }));
    }
    assert_eq!(set.blocks()[0].occupied(), 1);
    set.release(&Uid::from("a"));
    assert_eq!(reserve(&mut set, "b").as_deref(), Ok("10.244.1.0/24 fd00::/64"));
}

#[test]
fn t6_a_block_with_two_holders_is_free_when_both_are_gone() {
    let mut set = allocator(&[("10.244.0.0/24", 24)], &[]);
    let (a, b) = (Uid::from("a"), Uid::from("b"));
    let range = [cidr("10.244.0.0/24")];
    assert!(!set.occupy(&a, &range).is_shared);
    assert!(set.occupy(&b, &range).is_shared);
    set.release(&a);
    assert_eq!(reserve(&mut set, "c"), Err(Exhausted { index: 0 }));
    set.release(&b);
    assert_eq!(reserve(&mut set, "c").as_deref(), Ok("10.244.0.0/24"));
}

#[test]
fn b3_a_foreign_range_occupies_what_it_touches() {
    let mut set = allocator(&[("10.244.0.0/22", 24), ("fd00::/56", 64)], &[]);
    for (name, node, ranges, is_foreign) in [
        ("its own", "a", vec!["10.244.0.0/24", "fd00::/64"], false),
        ("only one family", "b", vec!["10.244.1.0/24"], false),
        ("outside", "c", vec!["192.168.0.0/24"], true),
        ("in the other order", "d", vec!["fd00:0:0:1::/64", "10.244.2.0/24"], true),
        ("a third one", "e", vec!["10.244.3.0/24", "fd00:0:0:2::/64", "10.0.0.0/24"], true),
    ] {
        let ranges: Vec<_> = ranges.iter().map(|text| cidr(text)).collect();
        assert_eq!(set.occupy(&Uid::from(node), &ranges).is_foreign, is_foreign, "{name}");
    }
    assert_eq!(set.blocks()[0].occupied(), 4, "those in the other order count");
    assert_eq!(set.blocks()[1].occupied(), 3);
}

#[test]
fn recording_the_same_twice_changes_nothing() {
    let mut set = allocator(&[("10.244.0.0/16", 24)], &[]);
    let node = Uid::from("a");
    reserve(&mut set, "a").unwrap();
    for _ in 0..3 {
        set.occupy(&node, &[cidr("10.244.0.0/24")]);
    }
    let changes = set.blocks()[0].take_changes();
    assert_eq!((changes.occupied, changes.released), (1, 0));
    set.release(&node);
    set.release(&node);
    assert_eq!(set.blocks()[0].take_changes().released, 1);
}
