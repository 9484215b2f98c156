//! Ranges of addresses: which of them overlap, and which addresses they contain.

use std::net::IpAddr;

/// A range in the notation of CIDR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    /// The address as a number, host bits included.
    base: u128,
    bits: u32,
    is_ipv6: bool,
}

/// An address and its family as a number.
fn number(address: IpAddr) -> (u128, bool) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), false),
        IpAddr::V6(address) => (address.to_bits(), true),
    }
}

impl Range {
    /// Reads `10.0.0.0/8`; absent where it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let (base, is_ipv6) = number(address.parse().ok()?);
        let bits = bits.parse().ok().filter(|bits| *bits <= width(is_ipv6))?;
        Some(Self { base, bits, is_ipv6 })
    }

    /// A number without its host bits, for a range of so many bits.
    fn masked(self, number: u128, bits: u32) -> u128 {
        let host = width(self.is_ipv6) - bits;
        number.checked_shr(host).unwrap_or_default().checked_shl(host).unwrap_or_default()
    }

    /// Whether both have an address in common.
    pub(super) fn overlaps(self, other: Self) -> bool {
        let bits = self.bits.min(other.bits);
        self.is_ipv6 == other.is_ipv6 && self.masked(self.base, bits) == self.masked(other.base, bits)
    }

    /// Whether it has all addresses of the other one.
    pub(super) fn contains(self, other: Self) -> bool {
        self.overlaps(other) && self.bits <= other.bits
    }

    /// Whether it has an address that is given to services: not the first one, and not the last one of IPv4.
    ///
    /// # Upstream
    /// `PrefixContainsIP`.
    pub(super) fn has_address(self, address: IpAddr) -> bool {
        let (address, is_ipv6) = number(address);
        if is_ipv6 != self.is_ipv6 {
            return false;
        }
        let network = self.masked(self.base, self.bits);
        let host_bits = 1_u128.checked_shl(width(is_ipv6) - self.bits).map_or(u128::MAX, |size| size - 1);
        let is_broadcast = !is_ipv6 && address == network | host_bits;
        self.masked(address, self.bits) == network && address != network && !is_broadcast
    }
}

/// The length of an address in bits.
const fn width(is_ipv6: bool) -> u32 {
    if is_ipv6 { 128 } else { 32 }
}
