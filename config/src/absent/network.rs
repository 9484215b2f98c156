//! Of services and their endpoints.

use super::AbsentSettings;
use crate::row::{Initial, Row};

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[AbsentSettings {
    controller: "service-lb-controller",
    rows: &[Row::new("concurrent-service-syncs", "Service-lb-controller", Initial::Int32(1))
        .path("ServiceController.ConcurrentServiceSyncs")
        .help(workers!("Services of type LoadBalancer"))
        .without_effect()],
}];
