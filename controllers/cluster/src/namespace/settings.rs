//! The settings.

use std::time::Duration;

use kcm_config::{GoDuration, Initial, Row, checks};
use kcm_framework::SettingsSection;
use kcm_framework::workqueue::RetryLimits;
use serde::Deserialize;

/// How many namespaces are processed at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-namespace-syncs";

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[
    Row::new(CONCURRENT_SYNCS, "Namespace-controller", Initial::Int32(10))
        .path("NamespaceController.ConcurrentNamespaceSyncs")
        .help("How many terminating namespaces are emptied at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive)
        .reloaded(),
    Row::new("namespace-sync-period", "Namespace-controller", Initial::Duration(GoDuration::from_secs(5 * 60)))
        .path("NamespaceController.NamespaceSyncPeriod")
        .help("How often every namespace is processed again although it has not changed; 0 for never."),
];

/// The limits of retries: a namespace is processed again within a minute, however often it has failed.
pub(super) const RETRY_LIMITS: RetryLimits = RetryLimits {
    base: Duration::from_millis(5),
    max: Duration::from_mins(1),
    interval: Duration::from_millis(100),
    burst: 100,
};

/// The values of the section.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Section {
    /// The resync period.
    #[serde(rename = "NamespaceSyncPeriod")]
    pub(super) sync_period: GoDuration,
}

impl SettingsSection for Section {
    const SECTION: &str = "NamespaceController";
}
