//! Event mapping: the stateful sets that a change enqueues.

use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_api::views::{PersistentVolumeClaim, Pod, StatefulSet};
use kcm_framework::Enqueue;
use kcm_framework::ownership::{OwnerLister, Owners};
use kcm_informers::Change;

/// The stateful sets as owners of pods.
pub(super) fn owners<L: OwnerLister<StatefulSet>>(sets: L) -> Owners<StatefulSet, L> {
    Owners::known(sets, |set| set.selector.as_ref().ok())
}

/// A change of a pod enqueues the stateful set that controls it, before and after the change. That of an orphan enqueues
/// all stateful sets that select it. A pod that became ready enqueues its owner again when it is available.
pub(super) fn keys_for_pod<L: OwnerLister<StatefulSet>>(
    change: &Change<Pod>,
    owners: &Owners<StatefulSet, L>,
) -> Vec<Enqueue<ObjectKey>> {
    owners.keys(change).into_iter().map(Enqueue::from).chain(when_available(change, owners)).collect()
}

fn when_available<L: OwnerLister<StatefulSet>>(
    change: &Change<Pod>,
    owners: &Owners<StatefulSet, L>,
) -> Option<Enqueue<ObjectKey>> {
    let Change::Updated { old, new } = change else { return None };
    if old.is_ready() || !new.is_ready() {
        return None;
    }
    let set = owners.controller_of(&new.metadata)?;
    let period = u64::try_from(set.min_ready_seconds).ok().filter(|period| *period > 0)?;
    Some(Enqueue::after(set.metadata.key.clone(), Duration::from_secs(period)))
}

/// The end of a claim enqueues the stateful sets that select it: a pod may wait for it. New claims have the labels of the
/// selector.
pub(super) fn keys_for_claim<L: OwnerLister<StatefulSet>>(
    change: &Change<PersistentVolumeClaim>,
    owners: &Owners<StatefulSet, L>,
) -> Vec<ObjectKey> {
    match change {
        Change::Deleted { last, .. } => {
            owners.selecting(&last.metadata).iter().map(|set| set.metadata.key.clone()).collect()
        }
        Change::Added(_) | Change::Updated { .. } => Vec::new(),
    }
}
