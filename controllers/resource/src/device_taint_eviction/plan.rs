//! The plan for a Pod: the time at which the taints of its devices evict it. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::scheduling::{ComparisonOperators, Toleration};
use kcm_framework::api::views::{AllocatedDevice, ClaimDevices, Pod, PodClaims, ResourceClaim, Taint};
use kcm_framework::api::{InternedStr, PartReader, Uid};
use kcm_framework::informers::Index;

use crate::shared::{Device, DeviceTaintRule, ResourceSlice, is_for_pod, is_reserved_for, used_claims};

/// Driver and name of a pool.
pub(super) type PoolKey = (InternedStr, InternedStr);

/// Origin of a taint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    Rule { name: InternedStr, uid: Uid },
    Slice { name: InternedStr },
}

/// An eviction and its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Eviction {
    /// Time from which the eviction is due.
    pub(super) due: Timestamp,
    pub(super) origins: BTreeSet<Origin>,
}

impl Eviction {
    /// Joins two evictions: the earlier time, and the reasons of both.
    fn join(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(mut one), Some(other)) => {
                one.due = one.due.min(other.due);
                one.origins.extend(other.origins);
                Some(one)
            }
            (one, other) => one.or(other),
        }
    }

    /// Names and uids of the rules among the reasons.
    pub(super) fn rules(&self) -> impl Iterator<Item = (&InternedStr, &Uid)> {
        self.origins.iter().filter_map(|origin| match origin {
            Origin::Rule { name, uid } => Some((name, uid)),
            Origin::Slice { .. } => None,
        })
    }
}

/// The taints of devices.
pub(super) struct Taints {
    /// The rules with the effect `NoExecute`.
    pub(super) rules: Vec<Arc<DeviceTaintRule>>,
    pub(super) slices: Slices,
}

/// The slices of pools.
#[derive(Clone)]
pub(super) enum Slices {
    Cached(Index<ResourceSlice, PoolKey>),
    Of(Vec<Arc<ResourceSlice>>),
}

impl Slices {
    /// Returns the slices of the newest generation of a pool. Older ones do not count.
    pub(super) fn newest(&self, driver: &InternedStr, pool: &InternedStr) -> Vec<Arc<ResourceSlice>> {
        let mut slices = match self {
            Self::Cached(by_pool) => by_pool.get(&(driver.clone(), pool.clone())),
            Self::Of(slices) => {
                slices.iter().filter(|slice| slice.driver == *driver && slice.pool == *pool).cloned().collect()
            }
        };
        let newest = slices.iter().map(|slice| slice.pool_generation).max();
        slices.retain(|slice| Some(slice.pool_generation) == newest);
        slices
    }
}

impl Taints {
    /// Returns the eviction from an allocated device.
    pub(super) fn evict_from(&self, device: &AllocatedDevice) -> Option<Eviction> {
        let mut eviction = None;
        for slice in self.slices.newest(&device.driver, &device.pool) {
            let published = slice.devices.iter().filter(|published| published.name == device.device);
            for taint in published.flat_map(Device::evicting) {
                let origin = Origin::Slice { name: InternedStr::from(slice.metadata.key.name()) };
                eviction = Eviction::join(eviction, by_taint(taint, &device.tolerations, origin));
            }
        }
        for rule in self.rules.iter().filter(|rule| rule.selects(&device.driver, &device.pool, &device.device)) {
            let (name, uid) = (InternedStr::from(rule.metadata.key.name()), rule.metadata.uid.clone());
            eviction = Eviction::join(eviction, by_taint(&rule.taint, &device.tolerations, Origin::Rule { name, uid }));
        }
        eviction
    }

    /// Returns the eviction from all devices of a claim. A claim that is not allocated has none.
    pub(super) fn evict_from_claim(&self, devices: &ClaimDevices) -> Option<Eviction> {
        devices.results.iter().fold(None, |eviction, device| Eviction::join(eviction, self.evict_from(device)))
    }
}

/// Returns the eviction by a taint, `None` if the taint is tolerated for ever.
///
/// Of all tolerations that tolerate the taint, one without seconds wins, and else the fewest seconds count. Only
/// tolerations with the effect `NoExecute` count, unlike for the scheduler. An example: a taint since 12:00:00 that is
/// tolerated for 30 s and for 300 s evicts at 12:00:30.
fn by_taint(taint: &Taint, tolerations: &[Toleration], origin: Origin) -> Option<Eviction> {
    // The API server sets the time. Without it, upstream evicts nothing.
    let since = taint.time_added?;
    let tolerates = |toleration: &&Toleration| {
        &*toleration.effect == "NoExecute" && toleration.tolerates(taint, ComparisonOperators::Disabled)
    };
    let mut seconds: Option<i64> = None;
    for toleration in tolerations.iter().filter(tolerates) {
        let own = toleration.toleration_seconds?.max(0);
        seconds = Some(seconds.map_or(own, |fewest| fewest.min(own)));
    }
    let wait = SignedDuration::from_secs(seconds.unwrap_or(0));
    // A time that the clock does not reach.
    let due = since.checked_add(wait).unwrap_or(Timestamp::MAX);
    Some(Eviction { due, origins: BTreeSet::from([origin]) })
}

/// A Pod and the claims around it.
#[derive(Clone, Copy)]
pub(super) struct PodInUse<'a> {
    pub(super) pod: &'a Pod,
    pub(super) claims: &'a PodClaims,
    /// The group of the Pod, if groups may have claims.
    pub(super) group: Option<&'a str>,
}

/// Returns the eviction of a Pod: of all claims that are created for it and reserved for it, the earliest.
///
/// A Pod that is not scheduled is not evicted. The phase of the Pod does not matter.
pub(super) fn evict_pod(
    PodInUse { pod, claims, group }: PodInUse<'_>,
    taints: &Taints,
    devices: PartReader<ClaimDevices>,
    claim_of: impl Fn(&str) -> Option<Arc<ResourceClaim>>,
) -> Option<Eviction> {
    pod.node_name.as_ref()?;
    let mut eviction = None;
    for (name, is_generated) in used_claims(claims) {
        let Some(claim) = claim_of(name).filter(|claim| claim.is_allocated) else { continue };
        let is_own = !is_generated || is_for_pod(&claim.metadata, pod, group);
        if is_own && is_reserved_for(&claim, pod, group) {
            eviction = Eviction::join(eviction, taints.evict_from_claim(devices.of(&claim)));
        }
    }
    eviction
}
