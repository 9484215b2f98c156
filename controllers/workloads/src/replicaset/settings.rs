//! What can be set.

use kcm_config::gates::{DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS, POD_DELETION_COST};
use kcm_config::{Gate, Initial, Row, checks};
use serde::Deserialize;

/// The rows of this controller.
pub(super) const ROWS: &[Row] =
    &[Row::new("concurrent-replicaset-syncs", "Replicaset-controller", Initial::Int32(5))
        .path("ReplicaSetController.ConcurrentRSSyncs")
        .help("How many replica sets are brought to their desired state at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive)];

/// The section of the configuration that the rows name.
pub(super) const SECTION: &str = "ReplicaSetController";

/// The values of the section.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Section {
    /// How many replica sets are handled at once.
    #[serde(rename = "ConcurrentRSSyncs")]
    pub(super) concurrent_syncs: u32,
}

/// What decisions depend on besides what is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    /// Gate `DeploymentReplicaSetTerminatingReplicas`: the status counts pods on their way out.
    pub(super) terminating_replicas: bool,
    /// Gate `PodDeletionCost`: an annotation ranks pods for deletion.
    pub(super) pod_deletion_cost: bool,
}

impl Settings {
    /// As the gates are.
    pub(super) fn from_gates(gate: impl Fn(&Gate) -> bool) -> Self {
        Self {
            terminating_replicas: gate(&DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS),
            pod_deletion_cost: gate(&POD_DELETION_COST),
        }
    }
}
