//! Event mapping: the Pods and rules that a change enqueues.

use std::collections::BTreeSet;

use kcm_framework::api::views::{ClaimDevices, Pod, PodClaims, ResourceClaim, Taint};
use kcm_framework::api::{InternedStr, ObjectKey, PartReader};
use kcm_framework::informers::Change;

use super::plan::{PoolKey, Slices};
use super::views::{DeviceTaintRule, ResourceSlice};
use crate::shared::{SCHEDULING, beside};

/// Driver, pool and name of a device.
pub(super) type DeviceKey = (InternedStr, InternedStr, InternedStr);

/// A Pod is enqueued if it is added, assigned or gets other claims while a claim of it is tainted. A deletion enqueues a
/// Pod with claims, so that nothing is kept for it.
pub(super) fn key_for_pod(
    change: &Change<Pod>,
    claims: PartReader<PodClaims>,
    is_tainted: impl Fn(&Pod) -> bool,
) -> Option<ObjectKey> {
    let uses = |pod: &Pod| {
        let used = claims.of(pod);
        !used.entries.is_empty() || used.extended.is_some()
    };
    let pod = match change {
        Change::Added(pod) => pod,
        Change::Updated { old, new } => {
            let reads = |pod: &Pod| (pod.metadata.uid.clone(), pod.node_name.clone(), pod.metadata.is_terminating());
            if reads(old) == reads(new) && claims.of(old) == claims.of(new) {
                return None;
            }
            // An eviction that was pending is cancelled, or forgotten.
            return uses(new).then(|| new.metadata.key.clone());
        }
        Change::Deleted { last, .. } => return uses(last).then(|| last.metadata.key.clone()),
        Change::Undecodable { .. } => return None,
    };
    (pod.node_name.is_some() && uses(pod) && is_tainted(pod)).then(|| pod.metadata.key.clone())
}

/// A claim that is tainted, before or after the change, enqueues its consumers.
pub(super) fn keys_for_claim(
    change: &Change<ResourceClaim>,
    is_tainted: impl Fn(&ResourceClaim) -> bool,
    pods_of_group: impl Fn(&ObjectKey) -> Vec<ObjectKey>,
) -> BTreeSet<ObjectKey> {
    let states = match change {
        Change::Added(claim) | Change::Deleted { last: claim, .. } => [Some(claim), None],
        Change::Updated { old, new } => [Some(old), Some(new)],
        Change::Undecodable { .. } => [None, None],
    };
    let tainted = states.into_iter().flatten().filter(|claim| is_tainted(claim));
    tainted.flat_map(|claim| consumers(claim, &pods_of_group)).collect()
}

/// The Pods for which a claim is reserved, and the Pods of groups.
pub(super) fn consumers(claim: &ResourceClaim, pods_of_group: impl Fn(&ObjectKey) -> Vec<ObjectKey>) -> Vec<ObjectKey> {
    let mut pods = Vec::new();
    for consumer in &claim.reserved_for {
        let key = beside(&claim.metadata.key, &consumer.name);
        match (&*consumer.api_group, &*consumer.resource) {
            ("", "pods") => pods.push(key),
            (SCHEDULING, "podgroups") => pods.extend(pods_of_group(&key)),
            _ => {}
        }
    }
    pods
}

/// Returns the devices whose evicting taints change with a slice. `slices` shows the pools after the change.
///
/// A slice that is created or deleted, or that has another generation, may change which slices of the pool count. All
/// tainted devices of the pool are returned then.
pub(super) fn devices_of_slice(change: &Change<ResourceSlice>, slices: &Slices) -> BTreeSet<DeviceKey> {
    let of = |slice: &ResourceSlice| -> BTreeSet<DeviceKey> {
        let tainted = slice.devices.iter().filter(|device| device.evicting().next().is_some());
        tainted.map(|device| (slice.driver.clone(), slice.pool.clone(), device.name.clone())).collect()
    };
    let of_pool = |(driver, pool): &PoolKey| -> BTreeSet<DeviceKey> {
        slices.newest(driver, pool).iter().flat_map(|slice| of(slice)).collect()
    };
    let pool = |slice: &ResourceSlice| (slice.driver.clone(), slice.pool.clone());
    match change {
        Change::Added(slice) | Change::Deleted { last: slice, .. } => {
            let others = of_pool(&pool(slice));
            of(slice).into_iter().chain(others).collect()
        }
        Change::Updated { old, new } => {
            let is_same_pool = pool(old) == pool(new) && old.pool_generation == new.pool_generation;
            if is_same_pool {
                return changed_devices(old, new);
            }
            let others = of_pool(&pool(old)).into_iter().chain(of_pool(&pool(new)));
            of(old).into_iter().chain(of(new)).chain(others).collect()
        }
        Change::Undecodable { .. } => BTreeSet::new(),
    }
}

/// The devices whose evicting taints differ.
fn changed_devices(old: &ResourceSlice, new: &ResourceSlice) -> BTreeSet<DeviceKey> {
    let taints = |slice: &'_ ResourceSlice, name: &InternedStr| -> Vec<Taint> {
        let devices = slice.devices.iter().filter(|device| device.name == *name);
        devices.flat_map(|device| device.evicting().cloned()).collect()
    };
    let tainted = old.devices.iter().chain(&new.devices).filter(|device| device.evicting().next().is_some());
    let changed = tainted.filter(|device| taints(old, &device.name) != taints(new, &device.name));
    changed.map(|device| (new.driver.clone(), new.pool.clone(), device.name.clone())).collect()
}

/// The effect of a change of a rule.
#[derive(Debug, Default)]
pub(super) struct RuleChange<'a> {
    /// The status of the rule is computed.
    pub(super) computes_status: bool,
    /// The rule before and after the change, if it evicts. The consumers of the devices that it selects are enqueued.
    pub(super) evicting: Vec<&'a DeviceTaintRule>,
}

/// Returns the effect of a change of a rule. A change of its status has none.
pub(super) fn change_of_rule(change: &Change<DeviceTaintRule>) -> RuleChange<'_> {
    let states = match change {
        Change::Added(rule) | Change::Deleted { last: rule, .. } => vec![&**rule],
        Change::Updated { old, new } if !new.has_spec_of(old) => vec![&**old, &**new],
        Change::Updated { .. } | Change::Undecodable { .. } => return RuleChange::default(),
    };
    let evicting = states.into_iter().filter(|rule| rule.taint.evicts()).collect();
    RuleChange { computes_status: true, evicting }
}

/// Returns the devices of a claim, as keys of an index.
pub(super) fn device_keys(devices: &ClaimDevices) -> Vec<DeviceKey> {
    devices.results.iter().map(|device| (device.driver.clone(), device.pool.clone(), device.device.clone())).collect()
}
