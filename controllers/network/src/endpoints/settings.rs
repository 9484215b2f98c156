//! The settings.

use kcm_framework::config::{GoDuration, Section, Setting, Workers};

const SECTION: Section = Section::new("Endpoints-controller", "EndpointController");
pub(super) const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-endpoint-syncs", "ConcurrentEndpointSyncs", "Services (for Endpoints)", 5);
pub(super) const BATCH_PERIOD: Setting<GoDuration> =
    SECTION.duration("endpoint-updates-batch-period", "EndpointUpdatesBatchPeriod", GoDuration::ZERO).help(
        "Time for which pod changes are collected before Endpoints are updated. Longer: fewer updates, slower traffic to new pods.",
    );
