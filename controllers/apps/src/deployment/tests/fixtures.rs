//! Fixtures of the deployment controller beside those of all controllers.

use std::sync::Arc;

use kcm_framework::api::views::Pod;

use crate::deployment::gates::Gates;
pub(crate) use crate::tests::cluster::{NAMESPACE, key, now};
use crate::tests::fixtures::pod;
pub(crate) use crate::tests::fixtures::{
    DeploymentBuilder, ReplicaSetBuilder, ago, available, build, condition, deployment, progressing, set,
};

/// The default feature gates.
pub(crate) const DEFAULTS: Gates = Gates { terminating_replicas: true };

/// A running pod of a replica set.
pub(crate) fn pod_of(set: &str) -> Arc<Pod> {
    pod_in(set, "Running")
}

/// A pod of a replica set in this phase.
pub(crate) fn pod_in(set: &str, phase: &str) -> Arc<Pod> {
    pod(&format!("{set}-x")).owned_by(set).phase(phase).build()
}
