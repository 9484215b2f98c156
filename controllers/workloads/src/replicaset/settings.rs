//! The settings.

use kcm_config::gates::{DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS, POD_DELETION_COST};
use kcm_config::{Gate, Initial, Row, checks};

/// How many keys are reconciled at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-replicaset-syncs";

/// The rows of the settings.
pub(super) const ROWS: &[Row] =
    &[Row::new(CONCURRENT_SYNCS, "Replicaset-controller", Initial::Int32(5))
        .path("ReplicaSetController.ConcurrentRSSyncs")
        .help("How many replica sets are brought to their desired state at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive)
        .reloaded()];

/// The feature gates that a plan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    /// Gate `DeploymentReplicaSetTerminatingReplicas`: the status counts terminating pods.
    pub(super) terminating_replicas: bool,
    /// Gate `PodDeletionCost`: an annotation ranks pods for deletion.
    pub(super) pod_deletion_cost: bool,
}

impl Settings {
    /// Reads the gates.
    pub(super) fn from_gates(gate: impl Fn(&Gate) -> bool) -> Self {
        Self {
            terminating_replicas: gate(&DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS),
            pod_deletion_cost: gate(&POD_DELETION_COST),
        }
    }
}
