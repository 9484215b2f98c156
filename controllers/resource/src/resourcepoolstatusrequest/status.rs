//! The status of a request. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::InternedStr;
use kcm_framework::api::time::format_seconds;
use serde::Serialize;
use serde_json::{Value, json};

use super::partitions::{Partition, partitions};
use super::pool::{InUse, Pool, pools};
use super::shareable::{Shareable, shareable};
use super::views::{PoolStatusRequest, PublishedSlice};
use crate::shared::DeviceTaintRule;

/// Most bytes of an error in the status.
const LONGEST_ERROR: usize = 256;

/// The status of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct PoolStatus {
    driver: String,
    pool_name: String,
    generation: i64,
    #[serde(flatten)]
    counts: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    partition_summary: Vec<Partition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shareable_summary: Option<Shareable>,
}

/// The numbers of a pool whose slices are all published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    resource_slice_count: usize,
    total_devices: usize,
    allocated_devices: usize,
    available_devices: usize,
    unavailable_devices: usize,
}

/// The caches and live reads that a status is computed from.
pub(super) struct Observed<'a> {
    pub(super) slices: &'a [PublishedSlice],
    /// Devices in use by the name of their pool, of the driver of the request.
    pub(super) in_use: &'a BTreeMap<InternedStr, InUse>,
    pub(super) rules: &'a [Arc<DeviceTaintRule>],
}

/// The status of a request, or the reason to compute it later.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Computed {
    Status {
        status: Value,
        pools: usize,
    },
    /// The driver has not published all slices of a pool yet.
    Incomplete,
}

/// Computes the status of a request.
pub(super) fn compute(request: &PoolStatusRequest, observed: &Observed<'_>, now: Timestamp) -> Computed {
    let all = pools(&request.driver, request.pool.as_deref(), observed.slices);
    let count = all.len();
    let within = &all[..request.limit.min(count)];
    if within.iter().any(|pool| pool.wanted_slices().is_some()) {
        return Computed::Incomplete;
    }
    let none = InUse::default();
    let statuses: Vec<PoolStatus> = within
        .iter()
        .map(|pool| {
            let in_use = observed.in_use.get(pool.name).unwrap_or(&none);
            pool_status(pool, request.partition_attribute.as_deref(), in_use, observed.rules)
        })
        .collect();
    let with_error = statuses.iter().filter(|pool| pool.validation_error.is_some()).count();
    let suffix = if with_error > 0 { format!(" ({with_error} incomplete)") } else { String::new() };
    let condition = json!({
        "type": "Complete",
        "status": "True",
        "reason": "CalculationComplete",
        "message": format!("Calculated status for {} pools{suffix}", statuses.len()),
        "lastTransitionTime": format_seconds(now),
    });
    let pools = statuses.len();
    let mut status = json!({ "poolCount": count, "conditions": [condition] });
    if pools > 0 {
        status["pools"] = json!(statuses);
    }
    Computed::Status { status, pools }
}

fn pool_status(pool: &Pool<'_>, attribute: Option<&str>, in_use: &InUse, rules: &[Arc<DeviceTaintRule>]) -> PoolStatus {
    let (total, allocated) = (pool.devices().count(), in_use.devices.len());
    let unavailable = pool.unavailable(rules);
    let counts = Counts {
        resource_slice_count: pool.slices.len(),
        total_devices: total,
        allocated_devices: allocated,
        // A device that is both allocated and tainted is subtracted twice, as upstream.
        available_devices: total.saturating_sub(allocated).saturating_sub(unavailable),
        unavailable_devices: unavailable,
    };
    let (partitions, shared) = (partitions(pool, attribute, in_use), shareable(pool, in_use));
    // The error of the partitions comes first, and with any error the partitions are left out.
    let of_partitions = partitions.as_ref().err().map(ToString::to_string);
    let error = of_partitions.or_else(|| shared.as_ref().err().map(ToString::to_string));
    PoolStatus {
        driver: pool.driver.to_owned(),
        pool_name: pool.name.to_owned(),
        generation: pool.generation,
        counts: Some(counts),
        node_name: pool.node_name().map(str::to_owned),
        partition_summary: if error.is_none() { partitions.unwrap_or_default() } else { Vec::new() },
        shareable_summary: shared.ok().flatten(),
        validation_error: error.map(cut),
    }
}

/// Cuts an error to what the API admits.
fn cut(mut error: String) -> String {
    let end = (0..=LONGEST_ERROR.min(error.len())).rev().find(|end| error.is_char_boundary(*end)).unwrap_or(0);
    error.truncate(end);
    error
}
