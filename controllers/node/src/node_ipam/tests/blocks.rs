//! The blocks of a cluster CIDR.

use super::cidr;
use crate::node_ipam::blocks::{Blocks, Changes};

fn blocks(cluster: &str, length: u8) -> Blocks {
    Blocks::new(cidr(cluster), length)
}

/// Takes that many blocks, and returns them as text.
fn take(blocks: &mut Blocks, number: usize) -> Vec<String> {
    let mut taken = Vec::new();
    for _ in 0..number {
        let Some(free) = blocks.next_free() else { break };
        blocks.take(free);
        taken.push(free.cidr.to_string());
    }
    taken
}

#[test]
fn s6_blocks_are_given_in_ascending_order_and_a_released_one_again_last() {
    let mut set = blocks("127.123.234.0/30", 32);
    let all = ["127.123.234.0/32", "127.123.234.1/32", "127.123.234.2/32", "127.123.234.3/32"];
    assert_eq!(take(&mut set, 2), all[..2]);
    set.release(set.span(cidr(all[0])).unwrap());
    assert_eq!(take(&mut set, 3), [all[2], all[3], all[0]]);
    assert_eq!(take(&mut set, 1), Vec::<String>::new(), "nothing is left");
    set.release(set.span(cidr(all[1])).unwrap());
    let free = set.next_free().unwrap();
    assert_eq!((free.cidr.to_string(), free.skipped), (all[1].to_owned(), 0));
}

#[test]
fn s6_occupied_blocks_that_are_skipped_are_counted() {
    let mut set = blocks("10.0.0.0/22", 24);
    set.hold(set.span(cidr("10.0.0.0/23")).unwrap());
    assert_eq!(set.next_free().map(|free| free.skipped), Some(2));
    assert_eq!(take(&mut set, 2), ["10.0.2.0/24", "10.0.3.0/24"]);
    set.release(set.span(cidr("10.0.1.0/24")).unwrap());
    assert_eq!(set.next_free().map(|free| (free.cidr.to_string(), free.skipped)), Some(("10.0.1.0/24".into(), 1)));
}

#[test]
fn blocks_of_ipv6_are_counted_across_the_middle_of_the_address() {
    for (name, cluster, length, last) in [
        ("left of the middle", "2001:db8:1234::/48", 64, "2001:db8:1234:ffff::/64"),
        ("right of the middle", "2001:db8:1234:3::/64", 80, "2001:db8:1234:3:ffff::/80"),
        ("across the middle", "2001:db8::/56", 72, "2001:db8:0:ff:ff00::/72"),
        ("whole addresses", "fd00::/112", 128, "fd00::ffff/128"),
    ] {
        let mut set = blocks(cluster, length);
        assert_eq!(set.count(), 65536, "{name}");
        set.hold(set.span(cidr(cluster)).unwrap());
        assert_eq!(set.next_free(), None, "{name}");
        set.release(set.span(cidr(last)).unwrap());
        assert_eq!(set.next_free().map(|free| free.cidr.to_string()).as_deref(), Some(last), "{name}");
    }
}

#[test]
fn s7_a_range_touches_the_blocks_that_it_has_addresses_of() {
    // The number of blocks that a range touches in 10.244.0.0/16, by /24.
    for (name, range, touched) in [
        ("a block", "10.244.7.0/24", Some(1)),
        ("wider than a block", "10.244.8.0/22", Some(4)),
        ("within a block", "10.244.7.128/26", Some(1)),
        ("the cluster", "10.244.0.0/16", Some(256)),
        ("around the cluster", "10.0.0.0/8", Some(256)),
        ("outside", "10.245.0.0/24", None),
        ("of the other family", "fd00::/64", None),
    ] {
        let mut set = blocks("10.244.0.0/16", 24);
        let span = set.span(cidr(range));
        if let Some(span) = span {
            set.hold(span);
        }
        assert_eq!(span.map(|_| set.occupied()), touched, "{name}");
    }
}

#[test]
fn s7_t6_only_blocks_that_become_occupied_or_free_are_counted() {
    let mut set = blocks("10.244.0.0/16", 24);
    let (one, four) = (set.span(cidr("10.244.8.0/24")).unwrap(), set.span(cidr("10.244.8.0/22")).unwrap());
    set.hold(one);
    set.hold(four);
    assert_eq!(set.take_changes(), Changes { occupied: 4, released: 0 });
    assert!(set.is_shared(four));
    set.release(four);
    assert_eq!(set.take_changes(), Changes { occupied: 0, released: 3 });
    assert_eq!(set.occupied(), 1, "the other holder keeps it");
    set.release(one);
    set.release(one);
    assert_eq!(set.take_changes(), Changes { occupied: 0, released: 1 });
}
