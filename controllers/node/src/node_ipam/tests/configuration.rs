//! The settings, and CIDRs as text.

use super::cidr;
use crate::node_ipam::cidr::Cidr;
use crate::node_ipam::configuration::{Clusters, ConfigurationError, MaskSizes};

fn sizes(any: i32, ipv4: i32, ipv6: i32) -> MaskSizes {
    MaskSizes { any, ipv4, ipv6 }
}

/// The cluster CIDRs with the prefix lengths of their blocks, as text.
fn check(clusters: &str, sizes: MaskSizes, services: &[&str]) -> Result<String, ConfigurationError> {
    let (clusters, _) = Clusters::read(clusters, sizes, services.iter().copied())?;
    let pods: Vec<String> = clusters.pods.iter().map(|(cidr, length)| format!("{cidr} by /{length}")).collect();
    Ok(pods.join(", "))
}

#[test]
fn s2_to_s5_the_prefix_of_a_node_follows_from_the_settings() {
    for (name, clusters, sizes, expected) in [
        ("IPv4", "10.244.0.0/16", sizes(0, 0, 0), "10.244.0.0/16 by /24"),
        ("IPv6", "fd00::/56", sizes(0, 0, 0), "fd00::/56 by /64"),
        ("s4 the flag of all families, IPv4", "10.244.0.0/16", sizes(26, 0, 0), "10.244.0.0/16 by /26"),
        ("s4 the flag of all families, IPv6", "fd00::/56", sizes(60, 0, 0), "fd00::/56 by /60"),
        ("s4 the flag of the family", "10.244.0.0/16", sizes(0, 25, 0), "10.244.0.0/16 by /25"),
        ("both families", "10.244.0.0/16,fd00::/56", sizes(0, 0, 0), "10.244.0.0/16 by /24, fd00::/56 by /64"),
        ("s4 IPv6 first", "fd00::/56,10.244.0.0/16", sizes(0, 25, 62), "fd00::/56 by /62, 10.244.0.0/16 by /25"),
        ("s2 spaces around, leading zeros, host bits", " 010.244.0.1/16 ", sizes(0, 0, 0), "10.244.0.0/16 by /24"),
        ("s5 one block", "10.244.0.0/24", sizes(0, 0, 0), "10.244.0.0/24 by /24"),
        ("s5 65536 blocks of IPv6", "fd00::/48", sizes(0, 0, 0), "fd00::/48 by /64"),
    ] {
        assert_eq!(check(clusters, sizes, &[]).as_deref(), Ok(expected), "{name}");
    }
}

#[test]
fn settings_that_give_no_pod_cidrs_are_refused() {
    use ConfigurationError::{
        MaskSizeOfBoth, MaskSizeOfOtherFamily, NoCidr, NotAStack, ServicesOfOneFamily, TooLong, TooMany, TooShort,
        TwoMaskSizes,
    };
    let (v4, v6, both) = ("10.244.0.0/16", "fd00::/56", "10.244.0.0/16,fd00::/56");
    let cluster = |text: &str| text.to_owned();
    for (name, clusters, sizes, services, expected) in [
        ("s2 none", "", sizes(0, 0, 0), vec![], NoCidr(String::new())),
        ("s2 a space between", "10.244.0.0/16, fd00::/56", sizes(0, 0, 0), vec![], NoCidr(" fd00::/56".to_owned())),
        ("s2 one family", "10.0.0.0/16,10.1.0.0/16", sizes(0, 0, 0), vec![], NotAStack(2)),
        ("s2 three", "10.0.0.0/16,fd00::/56,10.1.0.0/16", sizes(0, 0, 0), vec![], NotAStack(3)),
        ("s3 services of one family", v4, sizes(0, 0, 0), vec!["10.0.0.0/24", "10.1.0.0/24"], ServicesOfOneFamily),
        ("s4 one size for two families", both, sizes(24, 0, 0), vec![], MaskSizeOfBoth),
        ("s4 two flags", v4, sizes(24, 24, 0), vec![], TwoMaskSizes),
        ("s4 IPv6 size of IPv4", v4, sizes(0, 0, 64), vec![], MaskSizeOfOtherFamily { wrong: 6 }),
        ("s4 IPv4 size of IPv6", v6, sizes(0, 24, 0), vec![], MaskSizeOfOtherFamily { wrong: 4 }),
        (
            "s5 a Node larger than the cluster",
            v4,
            sizes(15, 0, 0),
            vec![],
            TooShort { cluster: cluster(v4), length: 15 },
        ),
        ("s5 too many blocks of IPv6", v6, sizes(0, 0, 73), vec![], TooMany { cluster: cluster(v6), length: 73 }),
        ("t7 no address has it", v4, sizes(33, 0, 0), vec![], TooLong { cluster: cluster(v4), length: 33 }),
        ("t7 no prefix at all", v4, sizes(-1, 0, 0), vec![], TooShort { cluster: cluster(v4), length: -1 }),
    ] {
        assert_eq!(check(clusters, sizes, &services), Err(expected), "{name}");
    }
}

#[test]
fn s3_service_cidrs_that_cannot_be_read_are_left_out() {
    let read = |services: &[&'static str]| Clusters::read("10.244.0.0/16", sizes(0, 0, 0), services.iter().copied());
    let (clusters, unreadable) = read(&["10.96.0.0/12", "nonsense", ""]).unwrap();
    assert_eq!((clusters.services, unreadable), (vec![cidr("10.96.0.0/12")], vec!["nonsense"]));
}

#[test]
fn cidrs_are_printed_as_go_prints_them() {
    for (text, printed) in [
        ("10.244.1.7/24", Some("10.244.1.0/24")),
        ("0.0.0.0/0", Some("0.0.0.0/0")),
        ("::/0", Some("::/0")),
        ("FD00:0:0:1::5/64", Some("fd00:0:0:1::/64")),
        ("255.255.255.255/32", Some("255.255.255.255/32")),
        ("10.244.1.0/33", None),
        ("10.244.1.0/+8", None),
        ("10.244.1.0/", None),
        ("10.244.1.0", None),
        ("fd00::/129", None),
    ] {
        assert_eq!(Cidr::parse(text).map(|cidr| cidr.to_string()).as_deref(), printed, "{text}");
    }
}
