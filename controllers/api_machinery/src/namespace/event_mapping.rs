//! Event mapping: the Namespace that a change of a Namespace enqueues.

use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Namespace;
use kcm_framework::informers::Change;

/// Delay from an event of a terminating Namespace to its reconcile.
///
/// After this delay every API server has observed that the Namespace is terminating and admits no new object in it. Every
/// member of etcd has the objects that were admitted before.
pub(super) const DELAY: Duration = Duration::from_secs(5);

/// Enqueues a terminating Namespace after [`DELAY`] when it is added, updated or resynced.
pub(super) fn keys_for_namespace(change: &Change<Namespace>) -> Option<Enqueue<ObjectKey>> {
    let namespace = match change {
        Change::Added(namespace) | Change::Updated { new: namespace, .. } => namespace,
        Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    let metadata = &namespace.metadata;
    metadata.is_terminating().then(|| Enqueue::after(metadata.key.clone(), DELAY))
}
