//! The settings.

use kcm_config::{Initial, Row, checks};

/// How many keys are reconciled at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-job-syncs";

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[Row::new(CONCURRENT_SYNCS, "Job-controller", Initial::Int32(5))
    .path("JobController.ConcurrentJobSyncs")
    .help("How many jobs are worked on at once. More is faster, and loads the API server and the network more.")
    .check(checks::positive)
    .reloaded()];
