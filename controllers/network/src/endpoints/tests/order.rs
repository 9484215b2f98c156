//! The order of ports and subsets. The hashes are those that go-spew and `hash/fnv` give for the types of `k8s.io/api`.

use super::super::order::{pack, port_hash, subset_hash};
use super::{address, not_ready, port, ready};
use crate::shared::subsets::{Address, SubsetPort};

fn dns() -> SubsetPort {
    let app_protocol = Some("example.com/dns".to_owned());
    SubsetPort { name: "dns".to_owned(), port: 53, protocol: "UDP".to_owned(), app_protocol }
}

#[test]
fn ports_have_the_hash_that_they_have_in_go() {
    for (port, expected) in [
        (port("http", 8080), 0x2530_4a33_da9e_6ece_350a_4142_a45f_5b75),
        (dns(), 0x566a_bdd0_549f_6657_8443_a334_7259_bdd4),
        (port("a", 80), 0x93f7_910f_45d8_a991_09c5_b3f7_4144_e582),
    ] {
        assert_eq!(port_hash(&port), expected, "{}", port.name);
    }
}

#[test]
fn subsets_have_the_hash_that_they_have_in_go() {
    let two = [address("10.0.0.1", "web-a"), address("10.0.0.2", "web-b")];
    let named = Address { ip: "10.0.0.3".to_owned(), hostname: "db-0".to_owned(), ..Address::default() };
    for (name, subset, expected) in [
        ("two ready", ready(&two, &[port("http", 8080)]), 0x3b11_25e0_7299_9f78_d3f4_b67b_fe2a_792c),
        ("no target", not_ready(&[named], &[port("http", 8080), dns()]), 0xe0d1_3164_141b_937b_2030_fe75_794a_8d48),
        ("no port", ready(&two[..1], &[]), 0x5bf8_8938_ae07_8762_82a9_c0c8_e503_bbae),
    ] {
        assert_eq!(subset_hash(&subset), expected, "{name}");
    }
}

#[test]
fn subsets_are_packed_and_ordered() {
    let (a, b) = (address("10.0.0.1", "web-a"), address("10.0.0.2", "web-b"));
    let (one, both) = ([a.clone()], [a.clone(), b.clone()]);
    let mut mixed = ready(&[b], &[port("http", 8080)]);
    mixed.not_ready_addresses = one.to_vec();
    for (name, subsets, expected) in [
        ("nothing", vec![], vec![]),
        (
            "ports of the same address are in one subset, by hash",
            ["a", "b", "c", "d"].map(|name| ready(&one, &[port(name, 80)])).to_vec(),
            vec![ready(&one, &["c", "d", "a", "b"].map(|name| port(name, 80)))],
        ),
        (
            "addresses of the same port are in one subset, by IP",
            vec![ready(&both[1..], &[port("http", 8080)]), ready(&one, &[port("http", 8080)])],
            vec![ready(&both, &[port("http", 8080)])],
        ),
        (
            "subsets are ordered by hash",
            vec![ready(&one, &[]), ready(&both, &[port("http", 8080)])],
            vec![ready(&both, &[port("http", 8080)]), ready(&one, &[])],
        ),
        (
            "an address that is not ready once is not ready",
            vec![ready(&both, &[port("http", 8080)]), not_ready(&one, &[port("http", 8080)])],
            vec![mixed],
        ),
    ] {
        assert_eq!(pack(subsets.clone()), expected, "{name}");
        let reversed = subsets.into_iter().rev().collect();
        assert_eq!(pack(reversed), expected, "{name}, reversed");
    }
}
