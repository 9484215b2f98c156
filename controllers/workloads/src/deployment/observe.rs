//! From the caches to one snapshot of a deployment, its replica sets, and what it needs to know of their pods.

use std::sync::Arc;

use kcm_api::views::{Deployment, DeploymentStrategy, Pod, PodPhase, ReplicaSet};
use kcm_api::{ObjectKey, Uid};
use kcm_informers::{Index, Informer};

use super::rollout::recreate::may_run;
use super::wiring::{Deployments, Family};
use crate::shared::ownership::{Holder, Owner, by_holder};

/// A deployment and what bears on it, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    /// The deployment.
    pub(super) deployment: Arc<Deployment>,
    /// Replica sets that it owns, and those of its namespace that are nobody's and that it selects.
    pub(super) replica_sets: Vec<Arc<ReplicaSet>>,
    /// The pods of these by the uid of their replica set; looked up only for the strategy that asks for it.
    pub(super) pods: Vec<(Uid, PodPhase)>,
}

/// The caches that the controller reads.
#[derive(Clone)]
pub(super) struct Caches {
    /// Deployments.
    pub(super) deployments: Informer<Deployment>,
    /// Replica sets.
    pub(super) replica_sets: Informer<ReplicaSet>,
    /// Pods.
    pub(super) pods: Informer<Pod>,
    sets_by_holder: Index<ReplicaSet, Holder>,
    pods_by_holder: Index<Pod, Holder>,
}

impl Caches {
    /// Adds the indexes that observation needs; they are the replica set controller's too.
    pub(super) fn new(
        deployments: Informer<Deployment>,
        replica_sets: Informer<ReplicaSet>,
        pods: Informer<Pod>,
    ) -> Self {
        let (sets_by_holder, pods_by_holder) = (by_holder(&replica_sets), by_holder(&pods));
        Self { deployments, replica_sets, pods, sets_by_holder, pods_by_holder }
    }

    /// What wiring needs to know of replica sets and pods, without the caches themselves.
    pub(super) fn lineage(&self) -> Lineage {
        Lineage { replica_sets: self.replica_sets.clone(), pods_by_holder: self.pods_by_holder.clone() }
    }

    /// The snapshot of one deployment; absent where there is none of that name.
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
        let mut sets = self.sets_by_holder.get(&Holder::Controller(deployment.metadata.uid.clone()));
        sets.retain(|set| Owner::of(deployment).owns(&set.metadata));
        if let (Some(namespace), Ok(selector)) = (deployment.metadata.key.namespace(), &deployment.selector) {
            let orphans = self.sets_by_holder.get(&Holder::Nobody(namespace.into()));
            sets.extend(orphans.into_iter().filter(|set| selector.matches(&set.metadata.labels)));
        }
        sets
    }

    fn pods_of(&self, set: &ReplicaSet) -> Vec<(Uid, PodPhase)> {
        let pods = self.pods_by_holder.get(&Holder::Controller(set.metadata.uid.clone()));
        let own = pods.iter().filter(|pod| Owner::of(set).owns(&pod.metadata));
        own.map(|pod| (set.metadata.uid.clone(), pod.phase)).collect()
    }
}

impl Deployments for Informer<Deployment> {
    fn get(&self, key: &ObjectKey) -> Option<Arc<Deployment>> {
        Informer::get(self, key)
    }

    fn in_namespace(&self, namespace: &str) -> Vec<Arc<Deployment>> {
        Informer::in_namespace(self, namespace)
    }
}

/// Whose a pod is, and whether there are others.
#[derive(Clone)]
pub(super) struct Lineage {
    replica_sets: Informer<ReplicaSet>,
    pods_by_holder: Index<Pod, Holder>,
}

impl Family for Lineage {
    fn replica_set(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>> {
        self.replica_sets.get(key)
    }

    fn has_running_pods(&self, set: &ReplicaSet) -> bool {
        let pods = self.pods_by_holder.get(&Holder::Controller(set.metadata.uid.clone()));
        pods.iter().any(|pod| may_run(pod.phase))
    }
}
