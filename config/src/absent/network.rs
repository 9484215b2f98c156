//! Of services and their endpoints.

use super::AbsentSettings;
use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[
    AbsentSettings {
        controller: "service-lb-controller",
        rows: &[
            Row::new("concurrent-service-syncs", "Service-lb-controller", Initial::Int32(1)).path("ServiceController.ConcurrentServiceSyncs").help("How many services with a load balancer in the cloud are worked on at once. More is faster, and loads the API server and the network more."),
        ],
    },
    AbsentSettings {
        controller: "endpoints-controller",
        rows: &[
            Row::new("concurrent-endpoint-syncs", "Endpoints-controller", Initial::Int32(5)).path("EndpointController.ConcurrentEndpointSyncs").help("How many services are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
            Row::new("endpoint-updates-batch-period", "Endpoints-controller", Initial::Duration(GoDuration::ZERO)).path("EndpointController.EndpointUpdatesBatchPeriod").help("How long a change of a pod waits for others, so that Endpoints are written less often. More saves writes, and delays traffic to new pods."),
        ],
    },
];
