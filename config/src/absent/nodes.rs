//! Of nodes.

use super::AbsentSettings;
use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[
    AbsentSettings {
        controller: "device-taint-eviction-controller",
        rows: &[
            Row::new("concurrent-device-taint-eviction-syncs", "Device-taint-eviction-controller", Initial::Int32(8)).path("DeviceTaintEvictionController.ConcurrentSyncs").help("How many evictions and status updates of tainted devices are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
        ],
    },
    AbsentSettings {
        controller: "resourceclaim-controller",
        rows: &[
            Row::new("concurrent-resourceclaim-syncs", "Resourceclaim-controller", Initial::Int32(50)).path("ResourceClaimController.ConcurrentSyncs").help("How many resource claims are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
        ],
    },
    AbsentSettings {
        controller: "node-ipam-controller",
        rows: &[
            Row::new("node-cidr-mask-size", "Node-ipam-controller", Initial::Int32(0)).path("NodeIPAMController.NodeCIDRMaskSize").help("The size of a node's range of pod addresses in a cluster of one IP family, as the length of its prefix; 0 for 24 with IPv4 and 64 with IPv6."),
            Row::new("node-cidr-mask-size-ipv4", "Node-ipam-controller", Initial::Int32(0)).path("NodeIPAMController.NodeCIDRMaskSizeIPv4").help("The size of a node's IPv4 range in a cluster of both IP families, as the length of its prefix; 0 for 24."),
            Row::new("node-cidr-mask-size-ipv6", "Node-ipam-controller", Initial::Int32(0)).path("NodeIPAMController.NodeCIDRMaskSizeIPv6").help("The size of a node's IPv6 range in a cluster of both IP families, as the length of its prefix; 0 for 64."),
            Row::new("service-cluster-ip-range", "Node-ipam-controller", Initial::String("")).path("NodeIPAMController.ServiceCIDR").help("The ranges of service addresses, one or one of each IP family, which no node may get; for --allocate-node-cidrs.").check(at_most_two),
            Row::in_file("NodeIPAMController.SecondaryServiceCIDR", "Node-ipam-controller", Initial::String("")).help("The second range of --service-cluster-ip-range."),
        ],
    },
    AbsentSettings {
        controller: "node-lifecycle-controller",
        rows: &[
            Row::new("large-cluster-size-threshold", "Node-lifecycle-controller", Initial::Int32(50)).path("NodeLifecycleController.LargeClusterSizeThreshold").help("A zone with more nodes than this is large. In an unhealthy zone that is not large, no pods are evicted."),
            Row::new("node-eviction-rate", "Node-lifecycle-controller", Initial::Float32(0.1)).path("NodeLifecycleController.NodeEvictionRate").help("On how many failed nodes a second pods are evicted, in a zone that is healthy."),
            Row::new("node-monitor-grace-period", "Node-lifecycle-controller", Initial::Duration(GoDuration::from_secs(50))).path("NodeLifecycleController.NodeMonitorGracePeriod").help("How long a running node may be silent before it counts as unhealthy; several times the period in which kubelets report."),
            Row::new("node-startup-grace-period", "Node-lifecycle-controller", Initial::Duration(GoDuration::from_secs(60))).path("NodeLifecycleController.NodeStartupGracePeriod").help("How long a starting node may be silent before it counts as unhealthy."),
            Row::new("secondary-node-eviction-rate", "Node-lifecycle-controller", Initial::Float32(0.01)).path("NodeLifecycleController.SecondaryNodeEvictionRate").help("On how many failed nodes a second pods are evicted, in a zone that is unhealthy and large."),
            Row::new("unhealthy-zone-threshold", "Node-lifecycle-controller", Initial::Float32(0.55)).path("NodeLifecycleController.UnhealthyZoneThreshold").help("The share of nodes that are not ready, at least three, that makes a zone unhealthy."),
            Row::in_file("NodeLifecycleController.PodEvictionTimeout", "Node-lifecycle-controller", Initial::Duration(GoDuration::ZERO)).help("It has no effect, as upstream: pods are evicted by taints."),
        ],
    },
];

/// Whether they are ranges is checked where they are used: upstream takes anything while nodes get no ranges.
fn at_most_two(value: &Value) -> Result<(), String> {
    let fits = matches!(value, Value::String(ranges) if ranges.split(',').count() <= 2);
    if fits { Ok(()) } else { Err("must be at most two ranges".to_owned()) }
}
