//! The snapshot of a deployment, its replica sets and their pods, from the caches.

use std::sync::Arc;

use kcm_api::views::{Deployment, DeploymentStrategy, Pod, PodPhase, ReplicaSet};
use kcm_api::{ObjectKey, Uid};
use kcm_informers::{Index, Informer};

use super::rollout::recreate::may_run;
use super::wiring::{DeploymentLister, ReplicaSetLister};
use crate::shared::ownership::{Owner, OwnerKey, by_owner};

/// The snapshot of one deployment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    /// The deployment.
    pub(super) deployment: Arc<Deployment>,
    /// The replica sets that the deployment controls, and the orphans of its namespace that it selects.
    pub(super) replica_sets: Vec<Arc<ReplicaSet>>,
    /// The phases of their pods, with the uid of the replica set; only for the strategy `Recreate`.
    pub(super) pods: Vec<(Uid, PodPhase)>,
}

/// The caches that the controller reads.
#[derive(Clone)]
pub(super) struct Caches {
    /// Deployments.
    pub(super) deployments: Informer<Deployment>,
    /// Replica sets.
    pub(super) replica_sets: Informer<ReplicaSet>,
    sets_by_owner: Index<ReplicaSet, OwnerKey>,
    pods_by_owner: Index<Pod, OwnerKey>,
}

impl Caches {
    /// Adds the indexes by owner, which the replica set controller shares.
    pub(super) fn new(
        deployments: Informer<Deployment>,
        replica_sets: Informer<ReplicaSet>,
        pods: &Informer<Pod>,
    ) -> Self {
        let (sets_by_owner, pods_by_owner) = (by_owner(&replica_sets), by_owner(pods));
        Self { deployments, replica_sets, sets_by_owner, pods_by_owner }
    }

    /// The replica sets, as the event mapping of pods looks them up.
    pub(super) fn cached_replica_sets(&self) -> CachedReplicaSets {
        CachedReplicaSets { replica_sets: self.replica_sets.clone(), pods_by_owner: self.pods_by_owner.clone() }
    }

    /// The snapshot of one deployment; absent if it does not exist.
    pub(super) fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let deployment = self.deployments.get(key)?;
        let replica_sets = self.sets_of(&deployment);
        let pods = match deployment.strategy {
            DeploymentStrategy::Recreate => replica_sets.iter().flat_map(|set| self.pods_of(set)).collect(),
            DeploymentStrategy::RollingUpdate { .. } | DeploymentStrategy::Other(_) => Vec::new(),
        };
        Some(Observed { deployment, replica_sets, pods })
    }

    fn sets_of(&self, deployment: &Deployment) -> Vec<Arc<ReplicaSet>> {
        let mut sets = self.sets_by_owner.get(&OwnerKey::Controller(deployment.metadata.uid.clone()));
        sets.retain(|set| Owner::of(deployment).owns(&set.metadata));
        if let (Some(namespace), Ok(selector)) = (deployment.metadata.key.namespace(), &deployment.selector) {
            let orphans = self.sets_by_owner.get(&OwnerKey::Orphan(namespace.into()));
            sets.extend(orphans.into_iter().filter(|set| selector.matches(&set.metadata.labels)));
        }
        sets
    }

    fn pods_of(&self, set: &ReplicaSet) -> Vec<(Uid, PodPhase)> {
        let pods = self.pods_by_owner.get(&OwnerKey::Controller(set.metadata.uid.clone()));
        let own = pods.iter().filter(|pod| Owner::of(set).owns(&pod.metadata));
        own.map(|pod| (set.metadata.uid.clone(), pod.phase)).collect()
    }
}

impl DeploymentLister for Informer<Deployment> {
    fn get(&self, key: &ObjectKey) -> Option<Arc<Deployment>> {
        Informer::get(self, key)
    }

    fn in_namespace(&self, namespace: &str) -> Vec<Arc<Deployment>> {
        Informer::in_namespace(self, namespace)
    }
}

/// The replica sets and their pods, from the caches.
#[derive(Clone)]
pub(super) struct CachedReplicaSets {
    replica_sets: Informer<ReplicaSet>,
    pods_by_owner: Index<Pod, OwnerKey>,
}

impl ReplicaSetLister for CachedReplicaSets {
    fn replica_set(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>> {
        self.replica_sets.get(key)
    }

    fn has_running_pods(&self, set: &ReplicaSet) -> bool {
        let pods = self.pods_by_owner.get(&OwnerKey::Controller(set.metadata.uid.clone()));
        pods.iter().any(|pod| may_run(pod.phase))
    }
}
