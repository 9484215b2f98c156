//! Of services and their endpoints.

use super::AbsentSettings;
use crate::row::{Initial, Row};

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[
    AbsentSettings {
        controller: "service-lb-controller",
        rows: &[
            Row::new("concurrent-service-syncs", "Service-lb-controller", Initial::Int32(1)).path("ServiceController.ConcurrentServiceSyncs").help("How many services with a load balancer in the cloud are worked on at once. More is faster, and loads the API server and the network more."),
        ],
    },
];
