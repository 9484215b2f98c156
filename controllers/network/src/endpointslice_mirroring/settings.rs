//! The settings, and the limits of retries.

use std::time::Duration;

use kcm_framework::config::{GoDuration, Section, Setting, Workers};
use kcm_framework::workqueue::RetryLimits;

use crate::shared::slices::settings::{slice_size, slice_syncs};

const SECTION: Section = Section::new("Endpointslice-mirroring-controller", "EndpointSliceMirroringController");
pub(super) const SYNCS: Setting<Workers> = SECTION
    .workers(
        "mirroring-concurrent-service-endpoint-syncs",
        "MirroringConcurrentServiceEndpointSyncs",
        "Endpoints (for mirroring)",
        5,
    )
    .check(slice_syncs);
pub(super) const BATCH_PERIOD: Setting<GoDuration> = SECTION
    .duration("mirroring-endpointslice-updates-batch-period", "MirroringEndpointUpdatesBatchPeriod", GoDuration::ZERO)
    .help("Time for which changes of mirrored EndpointSlices by others are collected before they are corrected.");
pub(super) const MAX_ENDPOINTS: Setting<i32> = SECTION
    .int32("mirroring-max-endpoints-per-subset", "MirroringMaxEndpointsPerSubset", 1000)
    .help("Maximum number of addresses that are mirrored from one subset of Endpoints.")
    .check(slice_size);

/// The limits of retries.
pub(super) const RETRY_LIMITS: RetryLimits = RetryLimits {
    base: Duration::from_secs(1),
    max: Duration::from_secs(100),
    interval: Duration::from_millis(100),
    burst: 100,
};
