//! The feature gates.

use kcm_framework::config::Gate;
use kcm_framework::config::gates::{DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS, POD_DELETION_COST};

use super::owner::ReplicaOwner;

/// The feature gates that a plan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gates {
    /// Gate `DeploymentReplicaSetTerminatingReplicas`: the status counts terminating pods, if the kind has the field.
    pub(super) terminating_replicas: bool,
    /// Gate `PodDeletionCost`: an annotation ranks pods for deletion.
    pub(super) pod_deletion_cost: bool,
}

impl Gates {
    pub(super) fn read<V: ReplicaOwner>(gate: impl Fn(&Gate) -> bool) -> Self {
        Self {
            terminating_replicas: V::COUNTS_TERMINATING && gate(&DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS),
            pod_deletion_cost: gate(&POD_DELETION_COST),
        }
    }
}
