//! Event mapping: the `StatefulSets` that a change enqueues.

use kcm_framework::Enqueue;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{PersistentVolumeClaim, Pod, StatefulSet};
use kcm_framework::informers::Change;
use kcm_framework::ownership::{OwnerLister, Owners};

use crate::shared::availability::when_available;

pub(super) fn owners<L: OwnerLister<StatefulSet>>(sets: L) -> Owners<StatefulSet, L> {
    Owners::known(sets, |set| set.selector.as_ref().ok())
}

/// A change of a Pod enqueues the `StatefulSet` that controls it, before and after the change. A change of an orphan
/// enqueues all `StatefulSets` that select it. A Pod that became ready enqueues its owner again when it becomes
/// available.
pub(super) fn keys_for_pod<L: OwnerLister<StatefulSet>>(
    change: &Change<Pod>,
    owners: &Owners<StatefulSet, L>,
) -> Vec<Enqueue<ObjectKey>> {
    let keys = owners.keys(change).into_iter().map(Enqueue::from);
    keys.chain(when_available(change, owners, |set| set.min_ready_seconds)).collect()
}

/// The deletion of a claim enqueues the `StatefulSets` that select it, because a pod may wait for it. New claims have
/// the labels of the selector.
pub(super) fn keys_for_claim<L: OwnerLister<StatefulSet>>(
    change: &Change<PersistentVolumeClaim>,
    owners: &Owners<StatefulSet, L>,
) -> Vec<ObjectKey> {
    match change {
        Change::Deleted { last, .. } => {
            owners.selecting(&last.metadata).iter().map(|set| set.metadata.key.clone()).collect()
        }
        Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } => Vec::new(),
    }
}
