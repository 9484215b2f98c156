//! Event mapping: the deployments that a change enqueues.

use std::sync::Arc;

use kcm_api::views::{Deployment, DeploymentStrategy, Pod, ReplicaSet};
use kcm_api::{KnownView as _, ObjectKey};
use kcm_framework::ownership::{Owner, OwnerLister, Owners, controller_key};
use kcm_informers::Change;

use super::rollout::recreate::may_run;

/// The deployments as owners of replica sets: a change of a replica set enqueues the deployment that controls it, before
/// and after the change. That of an orphan enqueues all deployments that select it: one of them adopts it.
pub(super) fn owners<L: OwnerLister<Deployment>>(deployments: L) -> Owners<Deployment, L> {
    Owners::known(deployments, |deployment| deployment.selector.as_ref().ok())
}

/// Looks replica sets and their pods up.
pub(super) trait ReplicaSetLister {
    /// The replica set of that name.
    fn replica_set(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>>;

    /// Whether the replica set has a pod that may run.
    fn has_running_pods(&self, set: &ReplicaSet) -> bool;
}

/// A pod enqueues the deployment of its replica set only for the strategy `Recreate`, and only when it was the last pod
/// of the replica set that may run: it finished or was deleted.
///
/// A recreation waits for that before it creates new pods. For everything else the status of the replica set enqueues
/// the deployment.
pub(super) fn key_for_pod<L: OwnerLister<Deployment>>(
    change: &Change<Pod>,
    owners: &Owners<Deployment, L>,
    replica_sets: &impl ReplicaSetLister,
) -> Option<ObjectKey> {
    let stopped = match change {
        Change::Deleted { last, final_state_known: _ } => last,
        Change::Updated { old, new } if may_run(old.phase) && !may_run(new.phase) => new,
        Change::Added(_) | Change::Updated { .. } => return None,
    };
    let set = replica_sets.replica_set(&controller_key(&ReplicaSet::RESOURCE, &stopped.metadata)?)?;
    if !Owner::of(&*set).owns(&stopped.metadata) {
        return None;
    }
    let deployment = owners.controller_of(&set.metadata)?;
    let waits = deployment.strategy == DeploymentStrategy::Recreate && !replica_sets.has_running_pods(&set);
    waits.then(|| deployment.metadata.key.clone())
}
