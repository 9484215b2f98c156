//! Event mapping: the deployments that a change enqueues.

use std::sync::Arc;

use kcm_api::views::{Deployment, DeploymentStrategy, Pod, ReplicaSet};
use kcm_api::{KnownView as _, Meta, ObjectKey, Resource};
use kcm_informers::Change;

use super::rollout::recreate::may_run;
use crate::shared::ownership::Owner;

const DEPLOYMENT: &Resource = &Deployment::RESOURCE;
const REPLICA_SET: &Resource = &ReplicaSet::RESOURCE;

/// Lists deployments.
pub(super) trait DeploymentLister {
    /// The deployment of that name.
    fn get(&self, key: &ObjectKey) -> Option<Arc<Deployment>>;

    /// All deployments of a namespace.
    fn in_namespace(&self, namespace: &str) -> Vec<Arc<Deployment>>;
}

/// Looks replica sets and their pods up.
pub(super) trait ReplicaSetLister {
    /// The replica set of that name.
    fn replica_set(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>>;

    /// Whether the replica set has a pod that may run.
    fn has_running_pods(&self, set: &ReplicaSet) -> bool;
}

/// A change of a replica set enqueues the deployment that controls it, before and after the change. That of an orphan
/// enqueues all deployments that select it: one of them adopts it.
pub(super) fn keys_for_replica_set(change: &Change<ReplicaSet>, deployments: &impl DeploymentLister) -> Vec<ObjectKey> {
    match change {
        // A replica set that is terminating when it is first seen is handled as a deletion.
        Change::Added(set) if set.metadata.is_terminating() || set.metadata.controller().is_some() => {
            owner_of(&set.metadata, deployments)
        }
        Change::Added(set) => selecting(&set.metadata, deployments),
        Change::Updated { old, new } => keys_for_updated_set(&old.metadata, &new.metadata, deployments),
        Change::Deleted { last, final_state_known: _ } => owner_of(&last.metadata, deployments),
    }
}

fn keys_for_updated_set(old: &Meta, new: &Meta, deployments: &impl DeploymentLister) -> Vec<ObjectKey> {
    let has_other_owner = old.controller() != new.controller();
    let mut keys = if has_other_owner { owner_of(old, deployments) } else { Vec::new() };
    if new.controller().is_some() {
        keys.extend(owner_of(new, deployments));
    } else if has_other_owner || old.labels != new.labels {
        keys.extend(selecting(new, deployments));
    }
    keys
}

/// A pod enqueues the deployment of its replica set only for the strategy `Recreate`, and only when it was the last pod
/// of the replica set that may run: it finished or was deleted.
///
/// A recreation waits for that before it creates new pods. For everything else the status of the replica set enqueues
/// the deployment.
pub(super) fn keys_for_pod(
    change: &Change<Pod>,
    deployments: &impl DeploymentLister,
    replica_sets: &impl ReplicaSetLister,
) -> Vec<ObjectKey> {
    let stopped = match change {
        Change::Deleted { last, final_state_known: _ } => last,
        Change::Updated { old, new } if may_run(old.phase) && !may_run(new.phase) => new,
        Change::Added(_) | Change::Updated { .. } => return Vec::new(),
    };
    recreating(stopped, deployments, replica_sets).into_iter().collect()
}

/// The deployment that may wait for the pod to stop.
fn recreating(
    stopped: &Pod,
    deployments: &impl DeploymentLister,
    replica_sets: &impl ReplicaSetLister,
) -> Option<ObjectKey> {
    let set = replica_sets.replica_set(&controller_key(&stopped.metadata, REPLICA_SET)?)?;
    if !Owner::of(&*set).owns(&stopped.metadata) {
        return None;
    }
    let deployment = owning(&set.metadata, deployments)?;
    let waits = deployment.strategy == DeploymentStrategy::Recreate && !replica_sets.has_running_pods(&set);
    waits.then(|| deployment.metadata.key.clone())
}

/// The deployment that controls the replica set, by the uid of the reference.
fn owning(set: &Meta, deployments: &impl DeploymentLister) -> Option<Arc<Deployment>> {
    let key = controller_key(set, DEPLOYMENT)?;
    deployments.get(&key).filter(|deployment| Owner::of(&**deployment).owns(set))
}

fn owner_of(set: &Meta, deployments: &impl DeploymentLister) -> Vec<ObjectKey> {
    owning(set, deployments).iter().map(|deployment| deployment.metadata.key.clone()).collect()
}

fn controller_key(object: &Meta, of: &Resource) -> Option<ObjectKey> {
    let reference = object.controller().filter(|reference| *reference.kind == *of.kind)?;
    Some(ObjectKey::namespaced(object.key.namespace()?, &*reference.name))
}

/// All deployments that could adopt the replica set. More than one is a mistake in their selectors.
///
/// A selector that selects everything does not count, as upstream: validation rejects it.
fn selecting(set: &Meta, deployments: &impl DeploymentLister) -> Vec<ObjectKey> {
    let (Some(namespace), false) = (set.key.namespace(), set.labels.is_empty()) else { return Vec::new() };
    let selects = |deployment: &&Arc<Deployment>| {
        let selector = deployment.selector.as_ref();
        selector.is_ok_and(|selector| !selector.is_everything() && selector.matches(&set.labels))
    };
    let all = deployments.in_namespace(namespace);
    all.iter().filter(selects).map(|deployment| deployment.metadata.key.clone()).collect()
}
