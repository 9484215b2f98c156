//! The settings.

use kcm_config::{Initial, Row, checks};

/// How many keys are reconciled at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-cron-job-syncs";

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[Row::new(CONCURRENT_SYNCS, "Cronjob-controller", Initial::Int32(5))
    .path("CronJobController.ConcurrentCronJobSyncs")
    .help("How many cron jobs are worked on at once. More is faster, and loads the API server and the network more.")
    .check(checks::positive)
    .reloaded()];
