//! The devices of a pool that several claims may share. Pure.

use std::collections::BTreeMap;

use kcm_framework::api::ResourceQuantity;
use serde::Serialize;

use super::partitions::MOST_ITEMS;
use super::pool::{InUse, Pool};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shareable {
    fully_available_devices: usize,
    partially_available_devices: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    capacity: Vec<Capacity>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Capacity {
    name: String,
    total: ResourceQuantity,
    consumed: ResourceQuantity,
    available: ResourceQuantity,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ShareableSummaryOverCap: pool {pool} has {keys} shareable capacity keys, exceeding the maximum of 32")]
pub(super) struct TooManyKeys {
    pool: String,
    keys: usize,
}

/// Returns the summary of the devices that several claims may share, `None` if the pool has none.
///
/// Example: two devices of `8Gi`, of which claims consume `4Gi`: total `16Gi`, consumed `4Gi`, available `12Gi`.
pub(super) fn shareable(pool: &Pool<'_>, in_use: &InUse) -> Result<Option<Shareable>, TooManyKeys> {
    let (mut summary, mut total) = (Shareable::default(), BTreeMap::<&str, ResourceQuantity>::new());
    for device in pool.devices().filter(|device| device.is_shareable) {
        if in_use.devices.contains(&device.name) {
            summary.partially_available_devices += 1;
        } else {
            summary.fully_available_devices += 1;
        }
        for (name, amount) in &device.capacity {
            *total.entry(name).or_default() += amount.value;
        }
    }
    if summary == Shareable::default() {
        return Ok(None);
    }
    if total.len() > MOST_ITEMS {
        return Err(TooManyKeys { pool: format!("{}/{}", pool.driver, pool.name), keys: total.len() });
    }
    summary.capacity = total
        .into_iter()
        .map(|(name, total)| {
            let consumed = in_use.consumed.get(name).copied().unwrap_or_default();
            let mut available = total;
            available -= consumed;
            if available < ResourceQuantity::default() {
                available = ResourceQuantity::default();
            }
            Capacity { name: name.to_owned(), total, consumed, available }
        })
        .collect();
    Ok(Some(summary))
}
