//! The snapshot of a Deployment, its `ReplicaSets` and their Pods, from the caches.

use std::sync::Arc;

use kcm_framework::api::views::{Deployment, DeploymentStrategy, Pod, PodPhase, ReplicaSet};
use kcm_framework::api::{ObjectKey, Uid};
use kcm_framework::informers::Informer;
use kcm_framework::ownership::{Dependents, Owner};

use super::event_mapping::ReplicaSetLister;
use super::rollout::recreate::may_run;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    pub(super) deployment: Arc<Deployment>,
    /// The `ReplicaSets` that the Deployment controls, and the orphans of its namespace that it selects.
    pub(super) replica_sets: Vec<Arc<ReplicaSet>>,
    /// The phases of their Pods, with the uid of the `ReplicaSet`; only for the strategy `Recreate`.
    pub(super) pods: Vec<(Uid, PodPhase)>,
}

/// The caches that the controller reads.
#[derive(Clone)]
pub(super) struct Caches {
    replica_sets: Informer<ReplicaSet>,
    sets: Dependents<ReplicaSet>,
    pods: Dependents<Pod>,
}

impl Caches {
    /// Adds the indexes by owner, which the `ReplicaSet` controller shares.
    pub(super) fn new(replica_sets: Informer<ReplicaSet>, pods: &Informer<Pod>) -> Self {
        let (sets, pods) = (Dependents::of(&replica_sets), Dependents::of(pods));
        Self { replica_sets, sets, pods }
    }

    /// Returns the `ReplicaSets` for the event mapping of Pods.
    pub(super) fn cached_replica_sets(&self) -> CachedReplicaSets {
        CachedReplicaSets { replica_sets: self.replica_sets.clone(), pods: self.pods.clone() }
    }

    /// Returns the snapshot of a Deployment.
    pub(super) fn observe(&self, deployment: &Arc<Deployment>) -> Observed {
        let selector = deployment.selector.as_ref().ok();
        let replica_sets = self.sets.owned_or_orphaned(Owner::of(&**deployment), selector);
        let pods = match deployment.strategy {
            DeploymentStrategy::Recreate => replica_sets.iter().flat_map(|set| self.pods_of(set)).collect(),
            DeploymentStrategy::RollingUpdate { .. } | DeploymentStrategy::Other(_) => Vec::new(),
        };
        Observed { deployment: Arc::clone(deployment), replica_sets, pods }
    }

    fn pods_of(&self, set: &ReplicaSet) -> Vec<(Uid, PodPhase)> {
        self.pods.owned_by(Owner::of(set)).iter().map(|pod| (set.metadata.uid.clone(), pod.phase)).collect()
    }
}

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
