//! The feature gates.

use kcm_framework::config::Gate;
use kcm_framework::config::gates::DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS;

/// The feature gates that a plan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gates {
    /// Gate `DeploymentReplicaSetTerminatingReplicas`: the status counts terminating pods.
    pub(super) terminating_replicas: bool,
}

impl Gates {
    pub(super) fn read(gate: impl Fn(&Gate) -> bool) -> Self {
        Self { terminating_replicas: gate(&DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS) }
    }
}
