//! Event mapping: the namespaces that a change of a namespace enqueues.

use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_api::views::Namespace;
use kcm_framework::Enqueue;
use kcm_informers::Change;

/// The time from an event of a terminating namespace to its processing.
///
/// Every API server has by then observed that the namespace is terminating, so that none admits a new object in it, and
/// every member of etcd has the objects that were admitted before.
pub(super) const DELAY: Duration = Duration::from_secs(5);

/// A terminating namespace is enqueued after [`DELAY`] when it is added, updated or resynced; no other one is.
pub(super) fn keys_for_namespace(change: &Change<Namespace>) -> Option<Enqueue<ObjectKey>> {
    let namespace = match change {
        Change::Added(namespace) | Change::Updated { new: namespace, .. } => namespace,
        Change::Deleted { .. } => return None,
    };
    let metadata = &namespace.metadata;
    metadata.is_terminating().then(|| Enqueue::after(metadata.key.clone(), DELAY))
}
