//! The settings of this controller.

use kcm_framework::config::{GoDuration, Initial, Row, Setting};

use crate::shared::LIFECYCLE;
pub(super) use crate::shared::MONITOR_GRACE_PERIOD;

pub(super) const LARGE_CLUSTER: Setting<i32> = LIFECYCLE
    .int32("large-cluster-size-threshold", "LargeClusterSizeThreshold", 50)
    .help("A zone with more nodes than this is large. In an unhealthy zone that is not large, no pods are evicted.");
pub(super) const EVICTION_RATE: Setting<f32> = LIFECYCLE
    .float32("node-eviction-rate", "NodeEvictionRate", 0.1)
    .help("Failed nodes per second whose pods are evicted, in a healthy zone.");
pub(super) const SECONDARY_EVICTION_RATE: Setting<f32> = LIFECYCLE
    .float32("secondary-node-eviction-rate", "SecondaryNodeEvictionRate", 0.01)
    .help("Failed nodes per second whose pods are evicted, in a large unhealthy zone.");
pub(super) const UNHEALTHY_ZONE: Setting<f32> = LIFECYCLE
    .float32("unhealthy-zone-threshold", "UnhealthyZoneThreshold", 0.55)
    .help("Fraction of NotReady nodes from which a zone is unhealthy, if they are at least 3.");
pub(super) const MONITOR_PERIOD: Setting<GoDuration> = LIFECYCLE
    .duration("node-monitor-period", "NodeMonitorPeriod", GoDuration::from_secs(5))
    .help("Interval at which the status of all nodes is checked.");
pub(super) const STARTUP_GRACE_PERIOD: Setting<GoDuration> = LIFECYCLE
    .duration("node-startup-grace-period", "NodeStartupGracePeriod", GoDuration::from_secs(60))
    .help("Time without a heartbeat after which a starting node is marked unhealthy.");
/// A key of old versions, which nothing reads.
pub(super) const POD_EVICTION_TIMEOUT: Row = Row::in_file(
    "NodeLifecycleController.PodEvictionTimeout",
    "Node-lifecycle-controller",
    Initial::Duration(GoDuration::ZERO),
)
.help("Grace period for evictions in old versions. No effect.");
