//! IP addresses as Kubernetes reads them.

use std::net::{IpAddr, Ipv4Addr};

/// Parses an IP address. Numbers of an IPv4 address may have leading zeros. An IPv4 address in IPv6 form becomes an
/// IPv4 address.
///
/// # Upstream
/// `ParseIPSloppy` of `k8s.io/utils/net`: `010.000.0.1` is `10.0.0.1`, `::ffff:10.0.0.1` too.
#[must_use]
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical()).or_else(|| with_leading_zeros(text))
}

fn with_leading_zeros(text: &str) -> Option<IpAddr> {
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let digits = parts.next()?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number = digits.trim_start_matches('0');
        *octet = if number.is_empty() { 0 } else { number.parse().ok()? };
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_reads_them_without_its_refusal_of_leading_zeros() {
        for (text, address) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("010.000.0.001", Some("10.0.0.1")),
            ("::ffff:10.0.0.1", Some("10.0.0.1")),
            ("fd00:0:0::0001", Some("fd00::1")),
            ("10.0.0", None),
            ("10.0.0.1.2", None),
            ("10.0.0.256", None),
            ("10.0..1", None),
            ("+10.0.0.1", None),
            ("fe80::1%eth0", None),
            ("", None),
        ] {
            assert_eq!(parse_ip(text).map(|ip| ip.to_string()).as_deref(), address, "{text:?}");
        }
    }
}
