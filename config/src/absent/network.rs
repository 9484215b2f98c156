//! Of services and their endpoints.

use super::AbsentSettings;
use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

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
    AbsentSettings {
        controller: "endpointslice-mirroring-controller",
        rows: &[
            Row::new("mirroring-concurrent-service-endpoint-syncs", "Endpointslice-mirroring-controller", Initial::Int32(5)).path("EndpointSliceMirroringController.MirroringConcurrentServiceEndpointSyncs").help("How many Endpoints are worked on at once. More is faster, and loads the API server and the network more.").check(slice_syncs),
            Row::new("mirroring-endpointslice-updates-batch-period", "Endpointslice-mirroring-controller", Initial::Duration(GoDuration::ZERO)).path("EndpointSliceMirroringController.MirroringEndpointUpdatesBatchPeriod").help("How long a change of Endpoints waits for others, so that mirrored EndpointSlices are written less often."),
            Row::new("mirroring-max-endpoints-per-subset", "Endpointslice-mirroring-controller", Initial::Int32(1000)).path("EndpointSliceMirroringController.MirroringMaxEndpointsPerSubset").help("How many addresses of a subset of Endpoints are mirrored.").check(slice_size),
        ],
    },
];

fn slice_syncs(value: &Value) -> Result<(), String> {
    checks::between(value, 1, 50)
}

fn slice_size(value: &Value) -> Result<(), String> {
    checks::between(value, 1, 1000)
}
