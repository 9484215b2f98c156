//! The partitions of a pool: devices that consume shared counters, by their type. Pure.

use std::collections::BTreeMap;

use kcm_framework::api::ResourceQuantity;
use serde::Serialize;

use super::pool::{InUse, Pool};
use super::views::{CounterSet, PublishedDevice};

/// Most items of the lists of a status.
pub(super) const MOST_ITEMS: usize = 32;

/// The devices of one type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Partition {
    attribute: String,
    #[serde(rename = "type")]
    type_: String,
    total: usize,
    allocatable: usize,
}

/// The reason why a pool has no summary of its partitions. Users read it in the status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PartitionError {
    #[error("PartitionTypeMissing: pool {pool} declares partitionTypeAttribute but publishes no sharedCounters")]
    NoCounters { pool: String },
    #[error(
        "PartitionTypeMissing: device {device:?} in pool {pool} does not carry partition type attribute {attribute:?}"
    )]
    NoType { device: String, pool: String, attribute: String },
    #[error("PartitionCostMismatch: devices of partition type {type_:?} in pool {pool} consume different counters")]
    OtherCost { type_: String, pool: String },
    #[error("PartitionSummaryOverCap: pool {pool} has {types} partition types, exceeding the maximum of 32")]
    TooMany { pool: String, types: usize },
}

type Counters<'a> = BTreeMap<(&'a str, &'a str), ResourceQuantity>;

/// A device with the attribute that names its type.
struct Typed<'a> {
    device: &'a PublishedDevice,
    attribute: &'a str,
}

#[derive(Default)]
struct Group<'a> {
    total: usize,
    cost: Counters<'a>,
    fresh: Vec<&'a PublishedDevice>,
}

/// Returns the partitions of a pool, sorted by attribute and type; none if no attribute names their types.
///
/// The attribute of the slice counts. `default` counts only if no slice of the pool has one. Each type is fitted on its own
/// into what the devices in use leave of the shared counters. Example: of a counter of 4, one device of cost 2 is in use.
/// Of three free devices of cost 1, two are allocatable.
pub(super) fn partitions(
    pool: &Pool<'_>,
    default: Option<&str>,
    in_use: &InUse,
) -> Result<Vec<Partition>, PartitionError> {
    let typed = typed_devices(pool, default);
    if typed.is_empty() {
        return Ok(Vec::new());
    }
    let name = || format!("{}/{}", pool.driver, pool.name);
    if pool.shared_counters().next().is_none() {
        return Err(PartitionError::NoCounters { pool: name() });
    }
    let mut groups: BTreeMap<(&str, &str), Group<'_>> = BTreeMap::new();
    for Typed { device, attribute } in typed.into_iter().filter(|typed| !typed.device.consumes.is_empty()) {
        let Some(value) = value_of(device, pool.driver, attribute) else {
            let (device, attribute) = (device.name.to_string(), attribute.to_owned());
            return Err(PartitionError::NoType { device, pool: name(), attribute });
        };
        let group = groups.entry((attribute, value)).or_default();
        let cost = cost(device);
        if group.total == 0 {
            group.cost = cost;
        } else if group.cost != cost {
            return Err(PartitionError::OtherCost { type_: value.to_owned(), pool: name() });
        }
        group.total += 1;
        if !in_use.devices.contains(&device.name) {
            group.fresh.push(device);
        }
    }
    let available = available(pool, in_use);
    let summary: Vec<Partition> = groups
        .into_iter()
        .map(|((attribute, type_), group)| Partition {
            attribute: attribute.to_owned(),
            type_: type_.to_owned(),
            total: group.total,
            allocatable: fit(&group.fresh, available.clone()),
        })
        .collect();
    if summary.len() > MOST_ITEMS {
        return Err(PartitionError::TooMany { pool: name(), types: summary.len() });
    }
    Ok(summary)
}

fn typed_devices<'a>(pool: &Pool<'a>, default: Option<&'a str>) -> Vec<Typed<'a>> {
    // A slice without devices declares nothing.
    let is_declared = pool.slices.iter().any(|slice| slice.partition_attribute.is_some() && !slice.devices.is_empty());
    let default = default.filter(|_| !is_declared);
    let of_slices = pool.slices.iter().flat_map(|slice| {
        let attribute = slice.partition_attribute.as_deref().or(default).filter(|attribute| !attribute.is_empty());
        slice.devices.iter().filter_map(move |device| Some(Typed { device, attribute: attribute? }))
    });
    of_slices.collect()
}

/// Returns the text of an attribute. The name may leave out the domain of the driver.
fn value_of<'a>(device: &'a PublishedDevice, driver: &str, attribute: &str) -> Option<&'a str> {
    let bare = || device.attributes.get(attribute.strip_prefix(driver)?.strip_prefix('/')?);
    device.attributes.get(attribute).or_else(bare)?.text.as_deref()
}

fn amounts(sets: &[CounterSet]) -> impl Iterator<Item = ((&str, &str), ResourceQuantity)> {
    sets.iter().flat_map(|set| set.counters.iter().map(|(name, amount)| ((&*set.name, name.as_str()), amount.value)))
}

fn cost(device: &PublishedDevice) -> Counters<'_> {
    amounts(&device.consumes).collect()
}

/// The shared counters without the consumption of devices in use. Each device counts once, however many claims use it.
fn available<'a>(pool: &Pool<'a>, in_use: &InUse) -> Counters<'a> {
    let shared = pool
        .shared_counters()
        .flat_map(|set| set.counters.iter().map(|(name, amount)| ((&*set.name, name.as_str()), amount.value)));
    let mut available: Counters<'a> = shared.collect();
    for device in pool.devices().filter(|device| in_use.devices.contains(&device.name)) {
        deduct(device, &mut available);
    }
    available
}

fn deduct<'a>(device: &'a PublishedDevice, available: &mut Counters<'a>) {
    for (counter, amount) in amounts(&device.consumes) {
        if let Some(left) = available.get_mut(&counter) {
            *left -= amount;
        }
    }
}

/// Number of devices that fit, in their order.
fn fit<'a>(devices: &[&'a PublishedDevice], mut available: Counters<'a>) -> usize {
    let mut fitting = 0;
    for device in devices {
        let fits = amounts(&device.consumes)
            .all(|(counter, amount)| available.get(&counter).is_some_and(|left| *left >= amount));
        if fits {
            deduct(device, &mut available);
            fitting += 1;
        }
    }
    fitting
}
