//! What the routes show.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_config::Effective;
use kcm_framework::{ManagerHandle, Metrics};

use super::health::Check;
use crate::leader_election::LeaderHealth;

/// What the routes show.
pub(crate) struct ServingState {
    /// The settings of the start.
    pub(crate) settings: Effective,
    /// The metrics of the process.
    pub(crate) metrics: Arc<Metrics>,
    /// The controllers, their loops and caches.
    pub(crate) manager: ManagerHandle,
    /// The health checks beside those of the controllers, in the order in which they are listed: what only a restart
    /// cures.
    pub(crate) live: Vec<Check>,
    /// The checks that only readiness has.
    pub(crate) ready: Vec<Check>,
    /// The leases that this process competes for; absent without leader election.
    pub(crate) leases: Option<LeaderHealth>,
    /// When the process was started.
    pub(crate) started: Timestamp,
    /// Sets the verbosity of the logs.
    pub(crate) set_verbosity: Box<dyn Fn(i32) + Send + Sync>,
}
