//! The settings.

use kcm_config::{Initial, Row, checks};

/// How many keys are reconciled at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-disruption-syncs";

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[Row::new(CONCURRENT_SYNCS, "Disruption-controller", Initial::Int32(1))
    .path("DisruptionController.ConcurrentDisruptionSyncs")
    .help(
        "How many pod disruption budgets are worked on at once. More is faster, and loads the API server and the network \
         more. Only this controller manager has it; the default is what the upstream one does.",
    )
    .check(checks::positive)
    .reloaded()];
