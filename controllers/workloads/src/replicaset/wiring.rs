//! Which change wakes which replica set.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_api::views::{Pod, ReplicaSet};
use kcm_informers::{Change, Origin};

use super::KIND;
use crate::shared::ownership::Owner;

/// A replica set to look at, now or later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wake {
    /// The replica set.
    pub(super) key: ObjectKey,
    /// How long from now.
    pub(super) after: Duration,
}

impl Wake {
    fn now(replica_set: &ReplicaSet) -> Self {
        Self::after(replica_set, Duration::ZERO)
    }

    fn after(replica_set: &ReplicaSet, after: Duration) -> Self {
        Self { key: replica_set.metadata.key.clone(), after }
    }
}

/// The replica sets that a pod may belong to.
pub(super) trait ReplicaSets {
    /// The replica set of that name.
    fn get(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>>;

    /// All of a namespace.
    fn in_namespace(&self, namespace: &str) -> Vec<Arc<ReplicaSet>>;
}

/// A replica set is woken by every change of its own, and by a resync.
///
/// Its removal wakes it too: what is waiting for it ends then.
pub(super) fn keys_for_replica_set(change: &Change<ReplicaSet>, origin: Origin) -> Vec<Wake> {
    match change {
        // A list that shows again what is known is no change; a resync is meant to be one.
        Change::Updated { old, new } if origin != Origin::Resync && is_same_version(old, new) => Vec::new(),
        Change::Added(replica_set)
        | Change::Updated { new: replica_set, .. }
        | Change::Deleted { last: replica_set, .. } => vec![Wake::now(replica_set)],
    }
}

/// A pod wakes the replica set that its controller reference means, before and after the change; a pod that is
/// nobody's wakes all that select it.
pub(super) fn keys_for_pod(change: &Change<Pod>, replica_sets: &impl ReplicaSets) -> Vec<Wake> {
    match change {
        // A pod that was terminating when we first saw it is one less, not one more.
        Change::Added(pod) if pod.metadata.is_terminating() => wake_owner(pod, replica_sets),
        Change::Added(pod) if pod.metadata.controller().is_some() => wake_owner(pod, replica_sets),
        Change::Added(pod) => wake_selecting(pod, replica_sets),
        Change::Updated { old, new } => keys_for_updated_pod(old, new, replica_sets),
        Change::Deleted { last, final_state_known: _ } => wake_owner(last, replica_sets),
    }
}

fn keys_for_updated_pod(old: &Pod, new: &Pod, replica_sets: &impl ReplicaSets) -> Vec<Wake> {
    if old.metadata.resource_version == new.metadata.resource_version {
        return Vec::new();
    }
    let relabelled = old.metadata.labels != new.metadata.labels;
    let has_other_owner = old.metadata.controller() != new.metadata.controller();
    let mut wakes = if has_other_owner { wake_owner(old, replica_sets) } else { Vec::new() };
    if new.metadata.is_terminating() {
        wakes.extend(wake_owner(new, replica_sets));
    } else if new.metadata.controller().is_none() {
        if relabelled || has_other_owner {
            wakes.extend(wake_selecting(new, replica_sets));
        }
    } else if let Some(owner) = owner_of(new, replica_sets) {
        wakes.push(Wake::now(&owner));
        let period = u64::try_from(owner.min_ready_seconds).unwrap_or(0);
        if !old.is_ready() && new.is_ready() && period > 0 {
            wakes.push(Wake::after(&owner, Duration::from_secs(period)));
        }
    }
    wakes
}

fn wake_owner(pod: &Pod, replica_sets: &impl ReplicaSets) -> Vec<Wake> {
    owner_of(pod, replica_sets).iter().map(|owner| Wake::now(owner)).collect()
}

/// The replica set that the pod's controller reference means, if it is still that one.
fn owner_of(pod: &Pod, replica_sets: &impl ReplicaSets) -> Option<Arc<ReplicaSet>> {
    let reference = pod.metadata.controller().filter(|reference| reference.kind == KIND)?;
    let key = ObjectKey::namespaced(pod.metadata.key.namespace()?, &*reference.name);
    replica_sets.get(&key).filter(|owner| Owner::of(&***owner).owns(&pod.metadata))
}

/// All replica sets that could adopt the pod; more than one is a mistake of their author's, and each gets its chance.
///
/// A selector that selects everything does not wake here, as upstream: the API refuses one.
fn wake_selecting(pod: &Pod, replica_sets: &impl ReplicaSets) -> Vec<Wake> {
    let (Some(namespace), false) = (pod.metadata.key.namespace(), pod.metadata.labels.is_empty()) else {
        return Vec::new();
    };
    let selects = |replica_set: &&Arc<ReplicaSet>| {
        let selector = replica_set.selector.as_ref();
        selector.is_ok_and(|selector| !selector.is_everything() && selector.matches(&pod.metadata.labels))
    };
    let selecting: Vec<_> = replica_sets.in_namespace(namespace);
    selecting.iter().filter(selects).map(|replica_set| Wake::now(replica_set)).collect()
}

fn is_same_version(old: &ReplicaSet, new: &ReplicaSet) -> bool {
    old.metadata.resource_version == new.metadata.resource_version
}
