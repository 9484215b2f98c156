//! Reads and writes of endpoint slices, which both of their controllers share.

mod content;
mod efficiency;
mod operation;
mod placement;
mod port_order;
pub(crate) mod settings;
mod writer;
mod written;

pub(crate) use content::{Conditions, Endpoint, EndpointPort, ExistingSlice, Hint, Hints, TargetRef};
pub(crate) use efficiency::{Efficiency, Totals};
pub(crate) use operation::Operation;
pub(crate) use placement::{Draft, matches};
#[cfg(test)]
pub(crate) use port_order::port_hash;
pub(crate) use port_order::sort_ports;
pub(crate) use writer::{OwnerName, SliceOwner, SliceWriter, WriteError, delete_slice};
pub(crate) use written::{OwnWrites, keys_for_slice};

use std::sync::Arc;

use kcm_framework::api::views::EndpointSlice;
use kcm_framework::api::{Fnv1a, ObjectKey};
use kcm_framework::informers::{Index, Informer};

/// The label that names the service of a slice.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label that names the controller of a slice.
pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// The slices of the cluster by the service that their label names.
#[derive(Clone)]
pub(crate) struct SlicesOfServices {
    by_service: Index<EndpointSlice, u64>,
}

impl SlicesOfServices {
    /// All controllers share the index.
    pub(crate) fn new(slices: &Informer<EndpointSlice>) -> Self {
        Self { by_service: slices.index("service", service_hash) }
    }

    /// Returns the slices of a service that this controller manages, sorted by name.
    pub(crate) fn of(&self, service: &ObjectKey, managed_by: &str) -> Vec<Arc<EndpointSlice>> {
        let mut slices = self.by_service.get(&key_hash(service));
        slices.retain(|slice| is_managed_by(slice, managed_by) && service_of(slice).as_ref() == Some(service));
        slices
    }
}

/// Returns the service that the label of a slice names.
pub(crate) fn service_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let name = slice.metadata.labels.get(SERVICE_NAME).filter(|name| !name.is_empty())?;
    Some(ObjectKey::namespaced(slice.metadata.key.namespace().unwrap_or_default(), name))
}

/// Whether the label of a slice names that controller.
pub(crate) fn is_managed_by(slice: &EndpointSlice, controller: &str) -> bool {
    slice.metadata.labels.get(MANAGED_BY) == Some(controller)
}

fn service_hash(slice: &EndpointSlice) -> Option<u64> {
    service_of(slice).map(|service| key_hash(&service))
}

fn key_hash(key: &ObjectKey) -> u64 {
    Fnv1a::new().part(key.namespace().unwrap_or_default()).part(key.name()).value()
}
