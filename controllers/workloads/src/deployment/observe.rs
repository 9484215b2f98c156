//! The snapshot of a deployment, its replica sets and their pods, from the caches.

use std::sync::Arc;

use kcm_api::views::{Deployment, DeploymentStrategy, Pod, PodPhase, ReplicaSet};
use kcm_api::{ObjectKey, Uid};
use kcm_framework::ownership::{Dependents, Owner};
use kcm_informers::Informer;

use super::event_mapping::ReplicaSetLister;
use super::rollout::recreate::may_run;

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
    sets: Dependents<ReplicaSet>,
    pods: Dependents<Pod>,
}

impl Caches {
    /// Adds the indexes by owner, which the replica set controller shares.
    pub(super) fn new(
        deployments: Informer<Deployment>,
        replica_sets: Informer<ReplicaSet>,
        pods: &Informer<Pod>,
    ) -> Self {
        let (sets, pods) = (Dependents::of(&replica_sets), Dependents::of(pods));
        Self { deployments, replica_sets, sets, pods }
    }

    /// The replica sets, as the event mapping of pods looks them up.
    pub(super) fn cached_replica_sets(&self) -> CachedReplicaSets {
        CachedReplicaSets { replica_sets: self.replica_sets.clone(), pods: self.pods.clone() }
    }

    /// The snapshot of one deployment; absent if it does not exist.
    pub(super) fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let deployment = self.deployments.get(key)?;
        let selector = deployment.selector.as_ref().ok();
        let replica_sets = self.sets.owned_or_orphaned(Owner::of(&*deployment), selector);
        let pods = match deployment.strategy {
            DeploymentStrategy::Recreate => replica_sets.iter().flat_map(|set| self.pods_of(set)).collect(),
            DeploymentStrategy::RollingUpdate { .. } | DeploymentStrategy::Other(_) => Vec::new(),
        };
        Some(Observed { deployment, replica_sets, pods })
    }

    fn pods_of(&self, set: &ReplicaSet) -> Vec<(Uid, PodPhase)> {
        self.pods.owned_by(Owner::of(set)).iter().map(|pod| (set.metadata.uid.clone(), pod.phase)).collect()
    }
}

/// The replica sets and their pods, from the caches.
#[derive(Clone)]
pub(super) struct CachedReplicaSets {
    replica_sets: Informer<ReplicaSet>,
    pods: Dependents<Pod>,
}

impl ReplicaSetLister for CachedReplicaSets {
    fn replica_set(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>> {
        self.replica_sets.get(key)
    }

    fn has_running_pods(&self, set: &ReplicaSet) -> bool {
        self.pods.controlled_by(&set.metadata.uid).iter().any(|pod| may_run(pod.phase))
    }
}
