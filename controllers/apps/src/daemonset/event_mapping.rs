//! Event mapping: the `DaemonSets` that a change enqueues, and the nodes whose change may concern `DaemonSets`.

use kcm_framework::Enqueue;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{DaemonSet, Node, Pod};
use kcm_framework::informers::Change;
use kcm_framework::ownership::{OwnerLister, Owners};

use crate::shared::availability::when_available;

/// `DaemonSets` as owners of pods and revisions: a change enqueues the `DaemonSet` that controls the changed object,
/// before and after the change. A change of an orphan enqueues all `DaemonSets` that select it: one of them adopts it.
///
/// Nodes enqueue `DaemonSets` through a queue of their own: see `node_updates.rs`.
pub(super) fn owners<L: OwnerLister<DaemonSet>>(sets: L) -> Owners<DaemonSet, L> {
    Owners::known(sets, |set| set.selector.as_ref().ok())
}

/// A change of a Pod enqueues its owners. A Pod that became ready enqueues its owner again when it becomes available.
pub(super) fn keys_for_pod<L: OwnerLister<DaemonSet>>(
    change: &Change<Pod>,
    owners: &Owners<DaemonSet, L>,
) -> Vec<Enqueue<ObjectKey>> {
    let keys = owners.keys(change).into_iter().map(Enqueue::from);
    keys.chain(when_available(change, owners, |set| set.min_ready_seconds)).collect()
}

/// A node enqueues itself if the change may concern `DaemonSets`: of its fields, labels and taints do.
pub(super) fn key_for_node(change: &Change<Node>) -> Option<ObjectKey> {
    let concerns = match change {
        Change::Added(_) | Change::Deleted { .. } => true,
        // The node still exists, with the labels and taints that it had.
        Change::Undecodable { .. } => false,
        Change::Updated { old, new } => (&old.metadata.labels, &old.taints) != (&new.metadata.labels, &new.taints),
    };
    concerns.then(|| change.key().clone())
}
