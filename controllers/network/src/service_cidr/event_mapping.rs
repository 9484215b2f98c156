//! Event mapping: the service CIDRs that a change enqueues.

use std::net::IpAddr;
use std::sync::Arc;

use kcm_api::views::ServiceCidr;
use kcm_api::{ObjectKey, PartialObjectMeta};
use kcm_informers::Change;

use super::plan::ranges;

/// The label of addresses that says who manages them.
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";

/// The value of [`MANAGED_BY`] of the API server.
const ALLOCATOR: &str = "ipallocator.k8s.io";

/// The address of an object that the API server has made for a service.
pub(super) fn allocated(address: &PartialObjectMeta) -> Option<IpAddr> {
    let is_allocated = address.metadata.labels.get(MANAGED_BY) == Some(ALLOCATOR);
    is_allocated.then(|| address.metadata.key.name().parse().ok()).flatten()
}

/// A service CIDR enqueues itself. One that is added may set others free, which overlap with it.
pub(super) fn keys_for_cidr(change: &Change<ServiceCidr>, all: &[Arc<ServiceCidr>]) -> Vec<ObjectKey> {
    let mut keys = vec![change.key().clone()];
    if let Change::Added(added) = change {
        let overlaps = |other: &&Arc<ServiceCidr>| {
            other.metadata.key != added.metadata.key
                && ranges(other).any(|range| ranges(added).any(|of_added| of_added.overlaps(range)))
        };
        keys.extend(all.iter().filter(overlaps).map(|other| other.metadata.key.clone()));
    }
    keys
}

/// An address that is taken or given back enqueues the service CIDRs that contain it.
pub(super) fn keys_for_address(change: &Change<PartialObjectMeta>, all: &[Arc<ServiceCidr>]) -> Vec<ObjectKey> {
    let address = match change {
        Change::Added(address) | Change::Deleted { last: address, .. } => allocated(address),
        Change::Updated { .. } => None,
    };
    let Some(address) = address else { return Vec::new() };
    let containing = all.iter().filter(|cidr| ranges(cidr).any(|range| range.has_address(address)));
    containing.map(|cidr| cidr.metadata.key.clone()).collect()
}
