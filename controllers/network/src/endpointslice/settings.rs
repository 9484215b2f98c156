//! The settings, and the limits of retries.

use std::time::Duration;

use kcm_framework::config::{GoDuration, Section, Setting, Workers};
use kcm_framework::workqueue::RetryLimits;

use crate::shared::slices::settings::{slice_size, slice_syncs};

const SECTION: Section = Section::new("Endpointslice-controller", "EndpointSliceController");
pub(super) const SYNCS: Setting<Workers> = SECTION
    .workers("concurrent-service-endpoint-syncs", "ConcurrentServiceEndpointSyncs", "Services (for EndpointSlices)", 5)
    .check(slice_syncs);
pub(super) const BATCH_PERIOD: Setting<GoDuration> =
    SECTION.duration("endpointslice-updates-batch-period", "EndpointUpdatesBatchPeriod", GoDuration::ZERO).help(
        "Time for which pod changes are collected before EndpointSlices are updated. Longer: fewer updates, slower traffic \
         to new pods.",
    );
pub(super) const MAX_ENDPOINTS: Setting<i32> = SECTION
    .int32("max-endpoints-per-slice", "MaxEndpointsPerSlice", 100)
    .help("Maximum number of endpoints in an EndpointSlice. A higher number makes fewer and larger slices.")
    .check(slice_size);

/// The limits of retries: a service may need many requests, so it is retried less often than other keys.
pub(super) const RETRY_LIMITS: RetryLimits = RetryLimits {
    base: Duration::from_secs(1),
    max: Duration::from_secs(1000),
    interval: Duration::from_millis(100),
    burst: 100,
};
