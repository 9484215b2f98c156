//! The number of endpoints of each zone, by its share in the CPUs of the cluster.

use std::collections::BTreeMap;

use super::super::zones::Shares;

/// Maximum traffic of an endpoint beyond its share.
const OVERLOAD: f64 = 0.2;

/// Number of endpoints that serve each zone.
pub(in crate::endpointslice) type ZoneCounts = BTreeMap<String, usize>;

/// The number of endpoints of a zone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::endpointslice) struct Allocation {
    /// With fewer, its endpoints would be overloaded.
    pub(in crate::endpointslice) minimum: usize,
    /// With more, another zone could not have its minimum.
    pub(in crate::endpointslice) maximum: usize,
    /// Its share of the endpoints.
    pub(in crate::endpointslice) desired: f64,
}

/// The reason for which endpoints cannot be distributed over zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::endpointslice) enum Obstacle {
    /// Zones or CPUs of nodes are not known, or there is one zone only.
    InsufficientNodeInformation,
    /// There are fewer endpoints than zones.
    InsufficientEndpoints { endpoints: usize, zones: usize },
    /// The minima of the zones are more than there are endpoints.
    Overload { endpoints: usize, zones: usize },
    /// An endpoint is in no zone.
    NoZone,
}

/// Returns the allocation of `endpoints` to each zone.
///
/// For example, of 5 endpoints a zone with 0.3 of the CPUs gets 2 at least: 1.5 are its share, and with 1 that one would
/// get 1.5 times the traffic of its share.
///
/// # Upstream
/// `getAllocations`
#[expect(clippy::cast_precision_loss, reason = "numbers of endpoints are small")]
pub(in crate::endpointslice) fn allocations(
    shares: Option<&Shares>,
    endpoints: usize,
) -> Result<BTreeMap<&str, Allocation>, Obstacle> {
    let shares = shares.ok_or(Obstacle::InsufficientNodeInformation)?;
    let zones = shares.len();
    if zones > endpoints {
        return Err(Obstacle::InsufficientEndpoints { endpoints, zones });
    }
    let minimum = |share: f64| ceiling(share * endpoints as f64 * (1.0 / (1.0 + OVERLOAD)));
    let minima: usize = shares.values().map(|share| minimum(*share)).sum();
    let spare = endpoints.checked_sub(minima).ok_or(Obstacle::Overload { endpoints, zones })?;
    let of_zone = |share: f64| {
        let minimum = minimum(share);
        Allocation { minimum, maximum: minimum + spare, desired: (share * endpoints as f64).max(minimum as f64) }
    };
    Ok(shares.iter().map(|(zone, share)| (zone.as_str(), of_zone(*share))).collect())
}

/// Returns the numbers of endpoints that zones give to others, and that zones receive.
///
/// # Upstream
/// `getGivingAndReceivingZones`: endpoints are moved as long as both zones gain at least half an endpoint by it, and one
/// of them a whole one.
#[expect(clippy::cast_precision_loss, reason = "numbers of endpoints are small")]
pub(in crate::endpointslice) fn transfers<'a>(
    allocations: &BTreeMap<&'a str, Allocation>,
    hinted: &ZoneCounts,
) -> (BTreeMap<&'a str, usize>, BTreeMap<&'a str, usize>) {
    let surplus = |(zone, allocation): (&&'a str, &Allocation)| {
        (*zone, hinted.get(*zone).copied().unwrap_or_default() as f64 - allocation.desired)
    };
    let surpluses = || allocations.iter().map(surplus);
    let mut givers: BTreeMap<&str, f64> = surpluses().filter(|(_, surplus)| *surplus > 0.0).collect();
    let lacking = surpluses().map(|(zone, surplus)| (zone, -surplus));
    let mut receivers: BTreeMap<&str, f64> = lacking.filter(|(_, lack)| *lack > 0.0).collect();
    let (mut giving, mut receiving) = (BTreeMap::new(), BTreeMap::new());
    while let (Some((giver, to_give)), Some((receiver, to_receive))) = (most(&mut givers), most(&mut receivers)) {
        if to_give.max(*to_receive) < 1.0 || to_give.min(*to_receive) < 0.5 {
            break;
        }
        *to_give -= 1.0;
        *to_receive -= 1.0;
        *giving.entry(giver).or_default() += 1;
        *receiving.entry(receiver).or_default() += 1;
    }
    (giving, receiving)
}

/// The zone with the largest amount, the first of several.
fn most<'a, 'm>(zones: &'m mut BTreeMap<&'a str, f64>) -> Option<(&'a str, &'m mut f64)> {
    let zones = zones.iter_mut().filter(|(_, amount)| **amount > 0.0).map(|(zone, amount)| (*zone, amount));
    zones.reduce(|most, next| if *next.1 > *most.1 { next } else { most })
}

/// Whether a zone has fewer endpoints than it should, for these shares.
///
/// # Upstream
/// `serviceOverloaded`
#[expect(clippy::cast_precision_loss, reason = "numbers of endpoints are small")]
pub(in crate::endpointslice) fn is_overloaded(hinted: &ZoneCounts, shares: Option<&Shares>) -> bool {
    if hinted.is_empty() {
        return false;
    }
    let Some(shares) = shares else { return true };
    let total: usize = hinted.values().sum();
    shares.iter().any(|(zone, share)| {
        let least = ceiling(total as f64 * share * (1.0 / (1.0 + OVERLOAD)));
        hinted.get(zone).is_none_or(|endpoints| *endpoints < least)
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a small positive number")]
fn ceiling(number: f64) -> usize {
    number.ceil() as usize
}
