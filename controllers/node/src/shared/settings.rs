//! Settings that several controllers read.

use kcm_framework::config::{GoDuration, Section, Setting};

/// The settings of the node lifecycle controller.
pub(crate) const LIFECYCLE: Section = Section::new("Node-lifecycle-controller", "NodeLifecycleController");

pub(crate) const MONITOR_GRACE_PERIOD: Setting<GoDuration> =
    LIFECYCLE.duration("node-monitor-grace-period", "NodeMonitorGracePeriod", GoDuration::from_secs(50)).help(
        "Time without a heartbeat after which a node is marked unhealthy. Choose several times the kubelets' report \
         interval.",
    );
