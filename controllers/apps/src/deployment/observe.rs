//! The snapshot of a Deployment, its `ReplicaSets` and their Pods, from the caches.

use std::sync::Arc;

use kcm_framework::Session;
use kcm_framework::api::views::{Deployment, DeploymentStrategy, Pod, PodPhase, ReplicaSet};
use kcm_framework::api::{ObjectKey, Uid};
use kcm_framework::informers::{Cache, Informer, UndecodableObject};
use kcm_framework::ownership::{Dependents, Owner};

use super::event_mapping::ReplicaSetLister;
use super::rollout::recreate::may_run;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    pub(super) deployment: Arc<Deployment>,
    /// The `ReplicaSets` that the Deployment controls, and the orphans of its namespace that it selects.
    pub(super) replica_sets: Vec<Arc<ReplicaSet>>,
    /// The phases of their Pods, with the uid of the `ReplicaSet`; only for the strategy `Recreate`. A Pod that cannot be
    /// decoded is in phase `Unknown`.
    pub(super) pods: Vec<(Uid, PodPhase)>,
}

/// The caches that the controller reads.
#[derive(Clone)]
pub(super) struct Caches {
    replica_sets: Informer<ReplicaSet>,
    sets: Dependents<ReplicaSet>,
    pods: Dependents<Pod>,
    all_pods: Arc<dyn Cache>,
}

impl Caches {
    /// Adds the indexes by owner, which the `ReplicaSet` controller shares.
    pub(super) fn new(replica_sets: Informer<ReplicaSet>, pods: &Informer<Pod>) -> Self {
        let (sets, all_pods) = (Dependents::of(&replica_sets), pods.cache());
        Self { replica_sets, sets, pods: Dependents::of(pods), all_pods }
    }

    /// Returns the `ReplicaSets` for the event mapping of Pods.
    pub(super) fn cached_replica_sets(&self) -> CachedReplicaSets {
        CachedReplicaSets { replica_sets: self.replica_sets.clone(), pods: self.pods.clone() }
    }

    /// Returns the snapshot of a Deployment.
    pub(super) fn observe(&self, deployment: &Arc<Deployment>) -> Observed {
        let selector = deployment.selector.as_ref().ok();
        let replica_sets = self.sets.owned_or_orphaned(Owner::of(&**deployment), selector);
        let pods = if reads_pods(deployment) {
            replica_sets.iter().flat_map(|set| self.pods_of(set)).collect()
        } else {
            Vec::new()
        };
        Observed { deployment: Arc::clone(deployment), replica_sets, pods }
    }

    fn pods_of(&self, set: &ReplicaSet) -> Vec<(Uid, PodPhase)> {
        let decoded = self.pods.owned_by(Owner::of(set)).into_iter().map(|pod| pod.phase);
        let undecodable = self.undecodable_pod_of(set).map(|_| PodPhase::Unknown);
        decoded.chain(undecodable).map(|phase| (set.metadata.uid.clone(), phase)).collect()
    }

    fn undecodable_pod_of(&self, set: &ReplicaSet) -> Option<Arc<UndecodableObject>> {
        self.all_pods.undecodable_controlled_by(&set.metadata.uid)
    }

    /// Reconciles the Deployment again when a Pod that it waits for can be decoded or is deleted.
    pub(super) fn requeue_when_decodable(&self, observed: &Observed, session: &Session) {
        if !reads_pods(&observed.deployment) {
            return;
        }
        for pod in observed.replica_sets.iter().filter_map(|set| self.undecodable_pod_of(set)) {
            session.explain(|| format!("Pod {} cannot be decoded, and may run", pod.key.name()));
            session.requeue_when_decodable(&self.all_pods, &pod);
        }
    }
}

/// Returns `true` if the strategy depends on Pods, and not only on the counts of `ReplicaSets`.
fn reads_pods(deployment: &Deployment) -> bool {
    match deployment.strategy {
        DeploymentStrategy::Recreate => true,
        DeploymentStrategy::RollingUpdate { .. } | DeploymentStrategy::Other(_) => false,
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
