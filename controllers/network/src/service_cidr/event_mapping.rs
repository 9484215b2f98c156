//! Event mapping: the service CIDRs that a change enqueues.

use std::net::IpAddr;
use std::sync::Arc;

use kcm_framework::api::views::ServiceCidr;
use kcm_framework::api::{ObjectKey, PartialObjectMeta};
use kcm_framework::informers::Change;

use super::plan::ranges;

/// The label that names the manager of an address.
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";

/// The value of [`MANAGED_BY`] for the API server.
const ALLOCATOR: &str = "ipallocator.k8s.io";

/// Returns the address of an object that the API server has allocated for a service.
pub(super) fn allocated(address: &PartialObjectMeta) -> Option<IpAddr> {
    let is_allocated = address.metadata.labels.get(MANAGED_BY) == Some(ALLOCATOR);
    is_allocated.then(|| address.metadata.key.name().parse().ok()).flatten()
}

/// Every change of a service CIDR enqueues it. Its addition also enqueues those of `all` that overlap with it, because it
/// may allow their deletion.
pub(super) fn keys_for_cidr(
    change: &Change<ServiceCidr>,
    all: impl FnOnce() -> Vec<Arc<ServiceCidr>>,
) -> Vec<ObjectKey> {
    let mut keys = vec![change.key().clone()];
    if let Change::Added(added) = change {
        let overlaps = |other: &&Arc<ServiceCidr>| {
            other.metadata.key != added.metadata.key
                && ranges(other).any(|range| ranges(added).any(|of_added| of_added.overlaps(range)))
        };
        keys.extend(all().iter().filter(overlaps).map(|other| other.metadata.key.clone()));
    }
    keys
}

/// An address that is allocated or released enqueues those of `all` that contain it.
pub(super) fn keys_for_address(
    change: &Change<PartialObjectMeta>,
    all: impl FnOnce() -> Vec<Arc<ServiceCidr>>,
) -> Vec<ObjectKey> {
    let address = match change {
        Change::Added(address) | Change::Deleted { last: address, .. } => allocated(address),
        // An address that cannot be decoded is still allocated.
        Change::Updated { .. } | Change::Undecodable { .. } => None,
    };
    let Some(address) = address else { return Vec::new() };
    let contains = |cidr: &&Arc<ServiceCidr>| ranges(cidr).any(|range| range.has_address(address));
    all().iter().filter(contains).map(|cidr| cidr.metadata.key.clone()).collect()
}
