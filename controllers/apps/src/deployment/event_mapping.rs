//! Event mapping: the Deployments that a change enqueues.

use std::sync::Arc;

use kcm_framework::api::views::{Deployment, DeploymentStrategy, Pod, ReplicaSet};
use kcm_framework::api::{KnownView as _, ObjectKey};
use kcm_framework::informers::Change;
use kcm_framework::ownership::{Owner, OwnerLister, Owners, controller_key};

use super::rollout::recreate::may_run;

/// Deployments as owners of `ReplicaSets`: a change of a `ReplicaSet` enqueues the Deployment that controls it, before
/// and after the change. A change of an orphan enqueues all Deployments that select it: one of them adopts it.
pub(super) fn owners<L: OwnerLister<Deployment>>(deployments: L) -> Owners<Deployment, L> {
    Owners::known(deployments, |deployment| deployment.selector.as_ref().ok())
}

/// Looks up `ReplicaSets` and their Pods.
pub(super) trait ReplicaSetLister {
    fn replica_set(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>>;

    /// Returns true if the `ReplicaSet` has a Pod that may run.
    fn has_running_pods(&self, set: &ReplicaSet) -> bool;
}

/// A Pod enqueues the Deployment of its `ReplicaSet` only for the strategy `Recreate`, and only if it was the last Pod
/// of the `ReplicaSet` that may run, and finished or was deleted.
///
/// A recreation waits for this before it creates new Pods. In all other cases the status of the `ReplicaSet` enqueues
/// the Deployment.
pub(super) fn key_for_pod<L: OwnerLister<Deployment>>(
    change: &Change<Pod>,
    owners: &Owners<Deployment, L>,
    replica_sets: &impl ReplicaSetLister,
) -> Option<ObjectKey> {
    let stopped = match change {
        Change::Deleted { last, final_state_known: _ } => last,
        Change::Updated { old, new } if may_run(old.phase) && !may_run(new.phase) => new,
        // A Pod that cannot be decoded may still run.
        Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } => return None,
    };
    let set = replica_sets.replica_set(&controller_key(&ReplicaSet::RESOURCE, &stopped.metadata)?)?;
    if !Owner::of(&*set).owns(&stopped.metadata) {
        return None;
    }
    let deployment = owners.controller_of(&set.metadata)?;
    let waits = deployment.strategy == DeploymentStrategy::Recreate && !replica_sets.has_running_pods(&set);
    waits.then(|| deployment.metadata.key.clone())
}
