//! Hints by topology: each zone gets endpoints for its share in the CPUs of the cluster.
//!
//! The hints of a slice that is not written otherwise stay as long as they are possible. So a few pods more or less write
//! few slices.

use std::collections::BTreeMap;

use kcm_framework::api::views::AddressType;

use super::super::zones::Shares;
use super::FamilySlices;
use super::allocation::{Allocation, Obstacle, ZoneCounts, allocations, transfers};
use crate::shared::slices::{Endpoint, ExistingSlice, Hints};

/// The hints of one service that are in force.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::endpointslice) struct ServiceHints {
    /// Number of endpoints of each family that serve each zone.
    pub(in crate::endpointslice) families: BTreeMap<AddressType, ZoneCounts>,
    /// Whether the service has been found to have hints.
    pub(in crate::endpointslice) is_populated: bool,
}

impl ServiceHints {
    /// The family has no hints any more.
    pub(in crate::endpointslice) fn remove(&mut self, family: AddressType) {
        self.families.remove(&family);
        self.is_populated = false;
    }
}

/// Sets the hints of the ready endpoints of a family, or takes all away where that is not possible; returns whether the
/// service had none before.
///
/// # Upstream
/// `AddHints`
pub(in crate::endpointslice) fn set_hints(
    slices: &mut FamilySlices,
    family: AddressType,
    shares: Option<&Shares>,
    hints: &mut ServiceHints,
) -> Result<bool, Obstacle> {
    match try_set_hints(slices, shares) {
        Ok(hinted) => {
            let is_new = !hints.is_populated;
            hints.families.insert(family, hinted);
            hints.is_populated = true;
            Ok(is_new)
        }
        Err(obstacle) => {
            hints.remove(family);
            slices.remove_hints();
            Err(obstacle)
        }
    }
}

fn try_set_hints(slices: &mut FamilySlices, shares: Option<&Shares>) -> Result<ZoneCounts, Obstacle> {
    let written = slices.create.iter().chain(&slices.update).map(|draft| &draft.endpoints);
    let endpoints = written.chain(slices.unchanged.iter().map(|slice| &slice.endpoints)).flatten();
    let allocations = allocations(shares, endpoints.filter(|endpoint| endpoint.is_ready()).count())?;

    let mut hinted = ZoneCounts::new();
    let changed = changed_slices(&slices.unchanged, &allocations, &mut hinted);
    let is_changed = |at: usize| changed.contains(&at);
    let unchanged =
        slices.unchanged.iter().enumerate().filter(|(at, _)| is_changed(*at)).map(|(_, slice)| &slice.endpoints);
    let written = slices.create.iter().chain(&slices.update).map(|draft| &draft.endpoints);
    let mut to_hint = written.chain(unchanged).flatten().filter(|endpoint| endpoint.is_ready());
    if to_hint.any(|endpoint| zone_of(endpoint).is_none()) {
        return Err(Obstacle::NoZone);
    }

    let mut at = 0;
    slices.update_where(|_| {
        at += 1;
        is_changed(at - 1)
    });
    for endpoint in slices.written().flat_map(|draft| &mut draft.endpoints).filter(|endpoint| endpoint.is_ready()) {
        let Some(zone) = zone_of(endpoint).map(str::to_owned) else { continue };
        endpoint.hints = Some(Hints::zone(&zone));
        *hinted.entry(zone).or_default() += 1;
    }
    redistribute(slices, &allocations, &mut hinted);
    Ok(hinted)
}

/// The positions of the slices whose hints cannot stay: an endpoint has none, or one for a zone that has no share, or a
/// zone would have more than its maximum. The hints of the others are counted.
fn changed_slices(
    slices: &[ExistingSlice],
    allocations: &BTreeMap<&str, Allocation>,
    hinted: &mut ZoneCounts,
) -> Vec<usize> {
    let mut changed = Vec::new();
    for (at, slice) in slices.iter().enumerate() {
        match hints_that_can_stay(slice, allocations, hinted) {
            Some(counts) => counts.into_iter().for_each(|(zone, count)| *hinted.entry(zone).or_default() += count),
            None => changed.push(at),
        }
    }
    changed
}

fn hints_that_can_stay(
    slice: &ExistingSlice,
    allocations: &BTreeMap<&str, Allocation>,
    hinted: &ZoneCounts,
) -> Option<ZoneCounts> {
    let mut counts = ZoneCounts::new();
    for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.is_ready()) {
        let zones = endpoint.hints.as_ref().map(|hints| &hints.for_zones).filter(|zones| !zones.is_empty())?;
        for zone in zones {
            *counts.entry(zone.name.clone()).or_default() += 1;
        }
    }
    let fits = |(zone, count): (&String, &usize)| {
        let so_far = hinted.get(zone).copied().unwrap_or_default();
        allocations.get(zone.as_str()).is_some_and(|allocation| so_far + count <= allocation.maximum)
    };
    counts.iter().all(fits).then_some(counts)
}

/// Moves hints of zones that have too many to zones that have too few.
fn redistribute(slices: &mut FamilySlices, allocations: &BTreeMap<&str, Allocation>, hinted: &mut ZoneCounts) {
    let (mut giving, mut receiving) = transfers(allocations, hinted);
    for endpoint in slices.written().flat_map(|draft| &mut draft.endpoints).filter(|endpoint| endpoint.is_ready()) {
        let Some(giver) = zone_of(endpoint).map(str::to_owned) else { continue };
        let Some(to_give) = giving.get_mut(giver.as_str()).filter(|count| **count > 0) else { continue };
        let Some((receiver, to_receive)) = receiving.iter_mut().find(|(_, count)| **count > 0) else { break };
        *to_give -= 1;
        *to_receive -= 1;
        endpoint.hints = Some(Hints::zone(receiver));
        *hinted.entry((*receiver).to_owned()).or_default() += 1;
        let left = hinted.entry(giver).or_default();
        *left = left.saturating_sub(1);
    }
}

fn zone_of(endpoint: &Endpoint) -> Option<&str> {
    endpoint.zone.as_deref().filter(|zone| !zone.is_empty())
}
