//! The settings.

use kcm_config::{Initial, Row, checks};

/// How many keys are reconciled at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-replicaset-syncs";

/// The rows of the settings.
pub(super) const ROWS: &[Row] =
    &[Row::new(CONCURRENT_SYNCS, "Replicaset-controller", Initial::Int32(5))
        .path("ReplicaSetController.ConcurrentRSSyncs")
        .help("How many replica sets are brought to their desired state at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive)
        .reloaded()];
