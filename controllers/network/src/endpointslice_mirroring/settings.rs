//! The settings.

use std::time::Duration;

use kcm_config::{GoDuration, Initial, Row};
use kcm_framework::SettingsSection;
use kcm_framework::workqueue::RetryLimits;
use serde::Deserialize;

use crate::shared::slices::settings::{slice_size, slice_syncs};

/// How many endpoints are processed at once.
pub(super) const CONCURRENT_SYNCS: &str = "mirroring-concurrent-service-endpoint-syncs";

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[
    Row::new(CONCURRENT_SYNCS, "Endpointslice-mirroring-controller", Initial::Int32(5))
        .path("EndpointSliceMirroringController.MirroringConcurrentServiceEndpointSyncs")
        .help(
            "How many Endpoints are worked on at once. More is faster, and loads the API server and the network more.",
        )
        .check(slice_syncs)
        .reloaded(),
    Row::new(
        "mirroring-endpointslice-updates-batch-period",
        "Endpointslice-mirroring-controller",
        Initial::Duration(GoDuration::ZERO),
    )
    .path("EndpointSliceMirroringController.MirroringEndpointUpdatesBatchPeriod")
    .help("How long a change of Endpoints waits for others, so that mirrored EndpointSlices are written less often."),
    Row::new("mirroring-max-endpoints-per-subset", "Endpointslice-mirroring-controller", Initial::Int32(1000))
        .path("EndpointSliceMirroringController.MirroringMaxEndpointsPerSubset")
        .help("How many addresses of a subset of Endpoints are mirrored.")
        .check(slice_size),
];

/// The limits of retries.
pub(super) const RETRY_LIMITS: RetryLimits = RetryLimits {
    base: Duration::from_secs(1),
    max: Duration::from_secs(100),
    interval: Duration::from_millis(100),
    burst: 100,
};

/// The values of the section.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Section {
    /// How long a change of a slice waits for others.
    #[serde(rename = "MirroringEndpointUpdatesBatchPeriod")]
    pub(super) batch_period: GoDuration,
    #[serde(rename = "MirroringMaxEndpointsPerSubset")]
    max_endpoints_per_subset: i32,
}

impl Section {
    /// How many addresses of a subset are mirrored.
    pub(super) fn max_endpoints(&self) -> usize {
        usize::try_from(self.max_endpoints_per_subset).unwrap_or(1).max(1)
    }
}

impl SettingsSection for Section {
    const SECTION: &str = "EndpointSliceMirroringController";
}
