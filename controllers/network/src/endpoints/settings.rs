//! The settings.

use kcm_config::{GoDuration, Initial, Row, checks};

/// How many keys are reconciled at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-endpoint-syncs";

/// How long a change of a pod waits for others.
pub(super) const BATCH_PERIOD: &str = "endpoint-updates-batch-period";

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[
    Row::new(CONCURRENT_SYNCS, "Endpoints-controller", Initial::Int32(5))
        .path("EndpointController.ConcurrentEndpointSyncs")
        .help("How many services are worked on at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive)
        .reloaded(),
    Row::new(BATCH_PERIOD, "Endpoints-controller", Initial::Duration(GoDuration::ZERO))
        .path("EndpointController.EndpointUpdatesBatchPeriod")
        .help(
            "How long a change of a pod waits for others, so that Endpoints are written less often. More saves writes, \
             and delays traffic to new pods.",
        ),
];
