//! Event mapping: the endpoints that a change enqueues.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{EndpointSlice, Endpoints, Service};
use kcm_framework::informers::Change;

use super::MANAGED_BY;
use crate::shared::slices::{self, OwnWrites};

/// The annotation of endpoints that hold a record of leader election.
pub(super) const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// The label that keeps endpoints from being mirrored.
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";

/// Whether endpoints are mirrored, if their service selects no pods.
pub(super) fn is_mirrored(endpoints: &Endpoints) -> bool {
    let metadata = &endpoints.metadata;
    metadata.labels.get(SKIP_MIRROR) != Some("true") && !metadata.annotations.contains_key(LEADER)
}

/// Endpoints are enqueued if they are mirrored before or after the change.
pub(super) fn keys_for_endpoints(change: &Change<Endpoints>) -> Option<ObjectKey> {
    let is_concerned = match change {
        Change::Added(endpoints)
        | Change::Undecodable { last: endpoints }
        | Change::Deleted { last: endpoints, .. } => is_mirrored(endpoints),
        Change::Updated { old, new } => is_mirrored(old) || is_mirrored(new),
    };
    is_concerned.then(|| change.key().clone())
}

/// A service without a selector enqueues its endpoints when it is added or deleted. An update enqueues them if it adds or
/// removes the selector.
pub(super) fn keys_for_service(change: &Change<Service>) -> Option<ObjectKey> {
    let selects = |service: &Arc<Service>| !service.selector.is_empty();
    let is_concerned = match change {
        Change::Added(service) | Change::Deleted { last: service, .. } => !selects(service),
        Change::Updated { old, new } => selects(old) != selects(new),
        // It still exists, and its endpoints are mirrored.
        Change::Undecodable { .. } => false,
    };
    is_concerned.then(|| change.key().clone())
}

/// A change of a slice by another client enqueues its endpoints, after `batch_period`.
pub(super) fn keys_for_slice(
    change: &Change<EndpointSlice>,
    own_writes: &OwnWrites,
    batch_period: Duration,
) -> impl Iterator<Item = Enqueue<ObjectKey>> + use<> {
    let endpoints = slices::keys_for_slice(change, MANAGED_BY, own_writes).into_iter();
    endpoints.map(move |endpoints| Enqueue::after(endpoints, batch_period))
}
