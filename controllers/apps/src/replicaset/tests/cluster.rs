//! A manager with the replica set controller, for tests.

use std::ops::Deref;

use kcm_sandbox_apiserver::{PODS, REPLICA_SETS, Sandbox};
use serde_json::Value;

use crate::replicaset::DESCRIPTOR;
use crate::tests::fixtures::{ReplicaSetBuilder, create_replica_set};

/// An API server and a manager on it, which stops on drop.
pub(crate) struct Cluster(crate::tests::cluster::Cluster);

impl Deref for Cluster {
    type Target = crate::tests::cluster::Cluster;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Cluster {
    /// Starts the controller on an API server that `prepare` has filled.
    pub(crate) async fn start(prepare: impl FnOnce(&Sandbox) + 'static) -> Self {
        Self(crate::tests::cluster::Cluster::start(&[DESCRIPTOR], &[PODS, REPLICA_SETS], prepare).await)
    }

    pub(crate) fn create(&self, replica_set: &ReplicaSetBuilder) -> Value {
        create_replica_set(self.sandbox(), replica_set)
    }

    pub(crate) fn replica_set(&self, name: &str) -> Value {
        self.object(&REPLICA_SETS, name)
    }

    pub(crate) fn status(&self, name: &str) -> Value {
        self.replica_set(name)["status"].clone()
    }
}
