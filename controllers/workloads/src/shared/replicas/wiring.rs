//! Event mapping: the replica sets that a change of a pod enqueues.

use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_api::views::{Pod, ReplicaSet};
use kcm_framework::Enqueue;
use kcm_framework::ownership::{OwnerLister, Owners};
use kcm_informers::Change;

/// The replica sets as owners of pods.
pub(super) fn owners<L: OwnerLister<ReplicaSet>>(replica_sets: L) -> Owners<ReplicaSet, L> {
    Owners::known(replica_sets, |replica_set| replica_set.selector.as_ref().ok())
}

/// A change of a pod enqueues the replica set that controls it, before and after the change. That of an orphan enqueues
/// all replica sets that select it. A pod that became ready enqueues its owner again when it is available.
pub(super) fn keys_for_pod<L: OwnerLister<ReplicaSet>>(
    change: &Change<Pod>,
    owners: &Owners<ReplicaSet, L>,
) -> Vec<Enqueue<ObjectKey>> {
    let keys = owners.keys(change).into_iter().map(Enqueue::from);
    keys.chain(when_available(change, owners)).collect()
}

fn when_available<L: OwnerLister<ReplicaSet>>(
    change: &Change<Pod>,
    owners: &Owners<ReplicaSet, L>,
) -> Option<Enqueue<ObjectKey>> {
    let Change::Updated { old, new } = change else { return None };
    if new.metadata.is_terminating() || old.is_ready() || !new.is_ready() {
        return None;
    }
    let owner = owners.controller_of(&new.metadata)?;
    let period = u64::try_from(owner.min_ready_seconds).ok().filter(|period| *period > 0)?;
    Some(Enqueue::after(owner.metadata.key.clone(), Duration::from_secs(period)))
}
