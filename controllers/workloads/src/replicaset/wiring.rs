//! Event mapping: the replica sets that a change enqueues.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_api::views::{Pod, ReplicaSet};
use kcm_framework::Enqueue;
use kcm_informers::Change;

use crate::shared::ownership::Owner;

/// The kind of the controller references to replica sets.
const KIND: &str = "ReplicaSet";

/// Lists replica sets.
pub(super) trait ReplicaSetLister {
    /// The replica set of that name.
    fn get(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>>;

    /// All replica sets of a namespace.
    fn in_namespace(&self, namespace: &str) -> Vec<Arc<ReplicaSet>>;
}

/// A change of a pod enqueues the replica set that controls it, before and after the change. That of an orphan enqueues
/// all replica sets that select it.
pub(super) fn keys_for_pod(change: &Change<Pod>, replica_sets: &impl ReplicaSetLister) -> Vec<Enqueue<ObjectKey>> {
    match change {
        // A pod that is terminating when it is first seen is handled as a deletion.
        Change::Added(pod) if pod.metadata.is_terminating() => enqueue_owner(pod, replica_sets),
        Change::Added(pod) if pod.metadata.controller().is_some() => enqueue_owner(pod, replica_sets),
        Change::Added(pod) => enqueue_selecting(pod, replica_sets),
        Change::Updated { old, new } => keys_for_updated_pod(old, new, replica_sets),
        Change::Deleted { last, final_state_known: _ } => enqueue_owner(last, replica_sets),
    }
}

fn keys_for_updated_pod(old: &Pod, new: &Pod, replica_sets: &impl ReplicaSetLister) -> Vec<Enqueue<ObjectKey>> {
    let relabelled = old.metadata.labels != new.metadata.labels;
    let has_other_owner = old.metadata.controller() != new.metadata.controller();
    let mut enqueues = if has_other_owner { enqueue_owner(old, replica_sets) } else { Vec::new() };
    if new.metadata.is_terminating() {
        enqueues.extend(enqueue_owner(new, replica_sets));
    } else if new.metadata.controller().is_none() {
        if relabelled || has_other_owner {
            enqueues.extend(enqueue_selecting(new, replica_sets));
        }
    } else if let Some(owner) = owner_of(new, replica_sets) {
        enqueues.push(owner.metadata.key.clone().into());
        let period = u64::try_from(owner.min_ready_seconds).unwrap_or(0);
        if !old.is_ready() && new.is_ready() && period > 0 {
            enqueues.push(Enqueue::after(owner.metadata.key.clone(), Duration::from_secs(period)));
        }
    }
    enqueues
}

fn enqueue_owner(pod: &Pod, replica_sets: &impl ReplicaSetLister) -> Vec<Enqueue<ObjectKey>> {
    owner_of(pod, replica_sets).iter().map(|owner| owner.metadata.key.clone().into()).collect()
}

/// The replica set that controls the pod, by the uid of the reference.
fn owner_of(pod: &Pod, replica_sets: &impl ReplicaSetLister) -> Option<Arc<ReplicaSet>> {
    let reference = pod.metadata.controller().filter(|reference| reference.kind == KIND)?;
    let key = ObjectKey::namespaced(pod.metadata.key.namespace()?, &*reference.name);
    replica_sets.get(&key).filter(|owner| Owner::of(&***owner).owns(&pod.metadata))
}

/// All replica sets that could adopt the pod. More than one is a mistake in their selectors.
///
/// A selector that selects everything does not count, as upstream: validation rejects it.
fn enqueue_selecting(pod: &Pod, replica_sets: &impl ReplicaSetLister) -> Vec<Enqueue<ObjectKey>> {
    let (Some(namespace), false) = (pod.metadata.key.namespace(), pod.metadata.labels.is_empty()) else {
        return Vec::new();
    };
    let selects = |replica_set: &&Arc<ReplicaSet>| {
        let selector = replica_set.selector.as_ref();
        selector.is_ok_and(|selector| !selector.is_everything() && selector.matches(&pod.metadata.labels))
    };
    let selecting: Vec<_> = replica_sets.in_namespace(namespace);
    selecting.iter().filter(selects).map(|replica_set| replica_set.metadata.key.clone().into()).collect()
}
