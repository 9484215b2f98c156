//! Event mapping: the owners that a change of a pod enqueues.

use kcm_framework::Enqueue;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Pod;
use kcm_framework::informers::Change;
use kcm_framework::ownership::{OwnerLister, Owners};

use super::owner::ReplicaOwner;
use crate::shared::availability::when_available;

pub(super) fn owners<V: ReplicaOwner, L: OwnerLister<V>>(lister: L) -> Owners<V, L> {
    Owners::known(lister, |owner| owner.selector().as_ref().ok())
}

/// A change of a Pod enqueues the object that controls it, before and after the change. A change of an orphan enqueues all
/// objects that select it. A Pod that became ready enqueues its owner again when it becomes available.
pub(super) fn keys_for_pod<V: ReplicaOwner, L: OwnerLister<V>>(
    change: &Change<Pod>,
    owners: &Owners<V, L>,
) -> Vec<Enqueue<ObjectKey>> {
    let keys = owners.keys(change).into_iter().map(Enqueue::from);
    keys.chain(when_available(change, owners, V::min_ready_seconds)).collect()
}
