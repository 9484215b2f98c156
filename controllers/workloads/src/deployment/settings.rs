//! What can be set.

use kcm_config::gates::DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS;
use kcm_config::{Gate, Initial, Row, checks};
use serde::Deserialize;

/// The rows of this controller.
pub(super) const ROWS: &[Row] =
    &[Row::new("concurrent-deployment-syncs", "Deployment-controller", Initial::Int32(5))
        .path("DeploymentController.ConcurrentDeploymentSyncs")
        .help("How many deployments are brought to their desired state at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive)];

/// The section of the configuration that the rows name.
pub(super) const SECTION: &str = "DeploymentController";

/// The values of the section.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Section {
    /// How many deployments are handled at once.
    #[serde(rename = "ConcurrentDeploymentSyncs")]
    pub(super) concurrent_syncs: u32,
}

/// What decisions depend on besides what is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    /// Gate `DeploymentReplicaSetTerminatingReplicas`: the status counts pods on their way out.
    pub(super) terminating_replicas: bool,
}

impl Settings {
    /// As the gates are.
    pub(super) fn from_gates(gate: impl Fn(&Gate) -> bool) -> Self {
        Self { terminating_replicas: gate(&DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS) }
    }
}
