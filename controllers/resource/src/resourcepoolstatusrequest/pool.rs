//! The pools of a driver: their slices, and the devices that are in use. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kcm_framework::api::views::{AllocatedDevice, Taint};
use kcm_framework::api::{InternedStr, ResourceQuantity};

use super::views::{CounterSet, PublishedDevice, PublishedSlice};
use crate::shared::DeviceTaintRule;

/// The slices of the newest generation of a pool.
#[derive(Debug)]
pub(super) struct Pool<'a> {
    pub(super) driver: &'a str,
    pub(super) name: &'a str,
    pub(super) generation: i64,
    pub(super) slices: Vec<&'a PublishedSlice>,
}

/// Devices of a pool that claims use. Administrators' access does not count.
#[derive(Debug, Default)]
pub(super) struct InUse {
    /// Names of the devices, of all generations.
    pub(super) devices: BTreeSet<InternedStr>,
    /// Sums of the consumed capacity.
    pub(super) consumed: BTreeMap<InternedStr, ResourceQuantity>,
}

impl InUse {
    pub(super) fn add(&mut self, device: &AllocatedDevice) {
        if device.has_admin_access {
            return;
        }
        self.devices.insert(device.device.clone());
        for (name, quantity) in device.consumed_capacity.iter() {
            *self.consumed.entry(name.clone()).or_default() += quantity;
        }
    }
}

/// Returns the pools of the slices, sorted by name. Slices of older generations do not count.
pub(super) fn pools<'a>(driver: &'a str, only: Option<&str>, slices: &'a [PublishedSlice]) -> Vec<Pool<'a>> {
    let mut by_name: BTreeMap<&str, Vec<&PublishedSlice>> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| &*slice.driver == driver && only.is_none_or(|only| only == &*slice.pool))
    {
        by_name.entry(&slice.pool).or_default().push(slice);
    }
    let pools = by_name.into_iter().map(|(name, mut slices)| {
        let generation = slices.iter().map(|slice| slice.generation).max().unwrap_or_default();
        slices.retain(|slice| slice.generation == generation);
        Pool { driver, name, generation, slices }
    });
    pools.collect()
}

impl<'a> Pool<'a> {
    pub(super) fn devices(&self) -> impl Iterator<Item = &'a PublishedDevice> {
        self.slices.iter().flat_map(|slice| &slice.devices)
    }

    pub(super) fn shared_counters(&self) -> impl Iterator<Item = &'a CounterSet> {
        self.slices.iter().flat_map(|slice| &slice.shared_counters)
    }

    /// The node of all slices, if it is the same.
    pub(super) fn node_name(&self) -> Option<&'a str> {
        let mut names = self.slices.iter().map(|slice| &*slice.node_name);
        let first = names.next().filter(|name| !name.is_empty())?;
        names.all(|name| name == first).then_some(first)
    }

    /// Number of slices that the driver wants to publish, if some are missing.
    pub(super) fn wanted_slices(&self) -> Option<i64> {
        let wanted = self.slices.first()?.slice_count;
        (i64::try_from(self.slices.len()).is_ok_and(|published| published < wanted)).then_some(wanted)
    }

    /// Number of devices with a taint, of their own or of a rule, that prevents scheduling.
    pub(super) fn unavailable(&self, rules: &[Arc<DeviceTaintRule>]) -> usize {
        let is_tainted = |device: &&PublishedDevice| {
            device.taints.iter().any(Taint::prevents_scheduling)
                || rules
                    .iter()
                    .any(|rule| rule.taint.prevents_scheduling() && rule.selects(self.driver, self.name, &device.name))
        };
        self.devices().filter(is_tainted).count()
    }
}
