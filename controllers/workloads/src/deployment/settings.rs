//! The settings.

use kcm_config::gates::DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS;
use kcm_config::{Gate, Initial, Row, checks};

/// How many keys are reconciled at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-deployment-syncs";

/// The rows of the settings.
pub(super) const ROWS: &[Row] =
    &[Row::new(CONCURRENT_SYNCS, "Deployment-controller", Initial::Int32(5))
        .path("DeploymentController.ConcurrentDeploymentSyncs")
        .help("How many deployments are brought to their desired state at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive)
        .reloaded()];

/// The feature gates that a plan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    /// Gate `DeploymentReplicaSetTerminatingReplicas`: the status counts terminating pods.
    pub(super) terminating_replicas: bool,
}

impl Settings {
    /// Reads the gates.
    pub(super) fn from_gates(gate: impl Fn(&Gate) -> bool) -> Self {
        Self { terminating_replicas: gate(&DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS) }
    }
}
