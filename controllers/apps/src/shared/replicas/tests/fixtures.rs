//! Fixtures beside those of all controllers.

use std::sync::Arc;

use kcm_framework::api::views::{Pod, ReplicaSet};

use crate::shared::replicas::gates::Gates;
use crate::shared::replicas::observe::Observed;
use crate::shared::replicas::rank::Occupancy;
pub(crate) use crate::tests::cluster::{NAMESPACE, key, now};
pub(crate) use crate::tests::fixtures::{PodBuilder, ReplicaSetBuilder, ago, build, pod, replica_set};

/// The default feature gates.
pub(crate) const DEFAULTS: Gates = Gates { terminating_replicas: true, pod_deletion_cost: true };

/// The snapshot of a replica set with these pods, without occupancy.
pub(crate) fn observed(owner: &ReplicaSetBuilder, pods: &[PodBuilder]) -> Observed<ReplicaSet> {
    Observed { owner: owner.build(), pods: build(pods), occupancy: Occupancy::default() }
}

pub(crate) fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
    pods.iter().map(|pod| pod.metadata.key.name()).collect()
}
