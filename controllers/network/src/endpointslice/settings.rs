//! The settings.

use std::time::Duration;

use kcm_config::{GoDuration, Initial, Row};
use kcm_framework::SettingsSection;
use kcm_framework::workqueue::RetryLimits;
use serde::Deserialize;

use crate::shared::slices::settings::{slice_size, slice_syncs};

/// How many services are processed at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-service-endpoint-syncs";

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[
    Row::new(CONCURRENT_SYNCS, "Endpointslice-controller", Initial::Int32(5))
        .path("EndpointSliceController.ConcurrentServiceEndpointSyncs")
        .help("How many services are worked on at once. More is faster, and loads the API server and the network more.")
        .check(slice_syncs)
        .reloaded(),
    Row::new("endpointslice-updates-batch-period", "Endpointslice-controller", Initial::Duration(GoDuration::ZERO))
        .path("EndpointSliceController.EndpointUpdatesBatchPeriod")
        .help("How long a change of a pod waits for others, so that EndpointSlices are written less often. More saves writes, and delays traffic to new pods."),
    Row::new("max-endpoints-per-slice", "Endpointslice-controller", Initial::Int32(100))
        .path("EndpointSliceController.MaxEndpointsPerSlice")
        .help("How many endpoints an EndpointSlice may hold. More makes slices fewer and larger.")
        .check(slice_size),
];

/// The limits of retries: a service may need many requests, so that it is retried less soon than other keys.
pub(super) const RETRY_LIMITS: RetryLimits = RetryLimits {
    base: Duration::from_secs(1),
    max: Duration::from_secs(1000),
    interval: Duration::from_millis(100),
    burst: 100,
};

/// The values of the section.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Section {
    /// How long a change of a pod waits for others.
    #[serde(rename = "EndpointUpdatesBatchPeriod")]
    pub(super) batch_period: GoDuration,
    #[serde(rename = "MaxEndpointsPerSlice")]
    max_endpoints_per_slice: i32,
}

impl Section {
    /// How many endpoints a slice may hold.
    pub(super) fn max_endpoints(&self) -> usize {
        usize::try_from(self.max_endpoints_per_slice).unwrap_or(1).max(1)
    }
}

impl SettingsSection for Section {
    const SECTION: &str = "EndpointSliceController";
}
