//! Of workloads and what scales and cleans them.

use super::AbsentSettings;
use crate::checks;
use crate::row::{Initial, Row};

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[
    AbsentSettings {
        controller: "daemonset-controller",
        rows: &[
            Row::new("concurrent-daemonset-syncs", "Daemonset-controller", Initial::Int32(2)).path("DaemonSetController.ConcurrentDaemonSetSyncs").help("How many daemon sets are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
        ],
    },
];
