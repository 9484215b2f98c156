//! Ranges of addresses.

use crate::service_cidr::range::Range;

fn range(text: &str) -> Range {
    Range::parse(text).unwrap_or_else(|| panic!("{text} is a range"))
}

#[test]
fn ranges_overlap_where_they_share_an_address_and_contain_what_is_not_larger() {
    for (a, b, overlaps, contains) in [
        ("10.0.0.0/16", "10.0.1.0/24", true, true),
        ("10.0.1.0/24", "10.0.0.0/16", true, false),
        ("10.0.0.0/24", "10.0.0.0/24", true, true),
        ("10.0.0.7/24", "10.0.0.9/24", true, true),
        ("10.0.0.0/24", "10.0.1.0/24", false, false),
        ("0.0.0.0/0", "10.0.1.0/24", true, true),
        ("fd00::/64", "fd00::/112", true, true),
        ("fd00::/64", "fd01::/64", false, false),
        ("::/0", "fd01::/64", true, true),
        ("::/0", "10.0.0.0/8", false, false),
        ("0.0.0.0/0", "fd01::/64", false, false),
    ] {
        assert_eq!((range(a).overlaps(range(b)), range(a).contains(range(b))), (overlaps, contains), "{a} and {b}");
    }
}

#[test]
fn the_first_address_and_the_last_one_of_ipv4_are_in_no_range() {
    for (of, address, expected) in [
        ("192.168.0.0/24", "192.168.0.1", true),
        ("192.168.0.0/24", "192.168.0.254", true),
        ("192.168.0.0/24", "192.168.0.0", false),
        ("192.168.0.0/24", "192.168.0.255", false),
        ("192.168.0.0/24", "192.168.1.1", false),
        ("192.168.0.0/23", "192.168.0.255", true),
        ("0.0.0.0/0", "255.255.255.255", false),
        ("10.0.0.1/32", "10.0.0.1", false),
        ("2001:db2::/64", "2001:db2::", false),
        ("2001:db2::/64", "2001:db2::1", true),
        ("2001:db2::/64", "2001:db2::ffff:ffff:ffff:ffff", true),
        ("2001:db2::/64", "2001:db2:0:1::1", false),
        ("::/0", "::1", true),
        ("::/0", "10.0.0.1", false),
        ("10.0.0.0/8", "::1", false),
    ] {
        assert_eq!(range(of).has_address(address.parse().unwrap()), expected, "{address} in {of}");
    }
}

#[test]
fn what_is_no_range_is_none() {
    for text in ["", "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/x", "10.0.0.0/-1", "a/8"] {
        assert_eq!(Range::parse(text), None, "{text}");
    }
}
