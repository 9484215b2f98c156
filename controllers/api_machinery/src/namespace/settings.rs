//! The settings.

use std::time::Duration;

use kcm_framework::config::{GoDuration, Section, Setting, Workers};
use kcm_framework::workqueue::RetryLimits;

const SECTION: Section = Section::new("Namespace-controller", "NamespaceController");

pub(super) const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-namespace-syncs", "ConcurrentNamespaceSyncs", "terminating Namespaces", 10);

pub(super) const SYNC_PERIOD: Setting<GoDuration> = SECTION
    .duration("namespace-sync-period", "NamespaceSyncPeriod", GoDuration::from_secs(5 * 60))
    .help("Interval at which unchanged namespaces are checked again. 0: never.");

/// The limits of retries: a Namespace is reconciled again within a minute, however often it has failed.
pub(super) const RETRY_LIMITS: RetryLimits = RetryLimits {
    base: Duration::from_millis(5),
    max: Duration::from_mins(1),
    interval: Duration::from_millis(100),
    burst: 100,
};
