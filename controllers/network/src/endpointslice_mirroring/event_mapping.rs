//! Event mapping: which changes enqueue which endpoints.

use std::sync::Arc;

use kcm_api::ObjectKey;
use kcm_api::views::{Endpoints, Service};
use kcm_informers::Change;

/// The annotation of endpoints that are the record of a leader election.
pub(super) const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// The label that keeps endpoints from being mirrored.
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";

/// Whether endpoints are mirrored, if their service selects no pods.
pub(super) fn is_mirrored(endpoints: &Endpoints) -> bool {
    let metadata = &endpoints.metadata;
    metadata.labels.get(SKIP_MIRROR) != Some("true") && !metadata.annotations.contains_key(LEADER)
}

/// The endpoints that changed, where they are mirrored, or were.
pub(super) fn keys_for_endpoints(change: &Change<Endpoints>) -> Option<ObjectKey> {
    let is_concerned = match change {
        Change::Added(endpoints) | Change::Deleted { last: endpoints, .. } => is_mirrored(endpoints),
        Change::Updated { old, new } => is_mirrored(old) || is_mirrored(new),
    };
    is_concerned.then(|| change.key().clone())
}

/// The endpoints of a service that selects no pods, or has begun or ceased to.
pub(super) fn keys_for_service(change: &Change<Service>) -> Option<ObjectKey> {
    let selects = |service: &Arc<Service>| !service.selector.is_empty();
    let is_concerned = match change {
        Change::Added(service) | Change::Deleted { last: service, .. } => !selects(service),
        Change::Updated { old, new } => selects(old) != selects(new),
    };
    is_concerned.then(|| change.key().clone())
}
