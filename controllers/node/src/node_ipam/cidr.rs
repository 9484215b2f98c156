//! Ranges of addresses in the notation of CIDR. Pure.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use kcm_framework::api::parse_ip;

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cidr {
    /// The first address as a number.
    pub(super) base: u128,
    /// Number of bits that all addresses share.
    pub(super) length: u8,
    pub(super) is_ipv6: bool,
}

impl Cidr {
    pub(super) const fn new(base: u128, length: u8, is_ipv6: bool) -> Self {
        let host_bits = width(is_ipv6) - length;
        Self { base: shift_left(shift_right(base, host_bits), host_bits), length, is_ipv6 }
    }

    /// Parses a range such as `10.244.1.0/24`. Host bits are cut off, and octets may have leading zeros, as upstream
    /// (`ParseCIDRSloppy`).
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length: u8 = length.parse().ok().filter(|_| is_number)?;
        let address = parse_ip(address)?;
        let is_ipv6 = address.is_ipv6();
        let base = match address {
            std::net::IpAddr::V4(address) => u128::from(address.to_bits()),
            std::net::IpAddr::V6(address) => address.to_bits(),
        };
        (length <= width(is_ipv6)).then(|| Self::new(base, length, is_ipv6))
    }

    /// The last address as a number.
    pub(super) const fn last(self) -> u128 {
        let host_bits = width(self.is_ipv6) - self.length;
        self.base | shift_left(1, host_bits).wrapping_sub(1)
    }

    /// Returns `true` if the range has all addresses of `other`.
    pub(super) const fn contains(self, other: Self) -> bool {
        self.is_ipv6 == other.is_ipv6 && self.base <= other.base && other.last() <= self.last()
    }
}

/// Number of bits of an address.
pub(super) const fn width(is_ipv6: bool) -> u8 {
    if is_ipv6 { 128 } else { 32 }
}

/// Shifts by any number of bits.
pub(super) const fn shift_left(number: u128, bits: u8) -> u128 {
    match number.checked_shl(bits as u32) {
        Some(shifted) => shifted,
        None => 0,
    }
}

/// Shifts by any number of bits.
pub(super) const fn shift_right(number: u128, bits: u8) -> u128 {
    match number.checked_shr(bits as u32) {
        Some(shifted) => shifted,
        None => 0,
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u32::try_from(self.base) {
            Ok(base) if !self.is_ipv6 => write!(f, "{}/{}", Ipv4Addr::from_bits(base), self.length),
            Ok(_) | Err(_) => write!(f, "{}/{}", Ipv6Addr::from_bits(self.base), self.length),
        }
    }
}
