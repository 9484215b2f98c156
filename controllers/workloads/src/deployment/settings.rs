//! The settings.

use kcm_config::gates::DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS;
use kcm_config::{Gate, Initial, Row, checks};
use kcm_framework::SettingsSection;
use serde::Deserialize;

/// The rows of the settings.
pub(super) const ROWS: &[Row] =
    &[Row::new("concurrent-deployment-syncs", "Deployment-controller", Initial::Int32(5))
        .path("DeploymentController.ConcurrentDeploymentSyncs")
        .help("How many deployments are brought to their desired state at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive)];

/// The values of the section.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Section {
    /// How many deployments are reconciled at once.
    #[serde(rename = "ConcurrentDeploymentSyncs")]
    pub(super) concurrent_syncs: u32,
}

impl SettingsSection for Section {
    const SECTION: &str = "DeploymentController";
}

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
