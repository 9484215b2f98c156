//! Settings of the controllers of nodes.

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
            Row::new("concurrent-device-taint-eviction-syncs", "Device-taint-eviction-controller", Initial::Int32(8)).path("DeviceTaintEvictionController.ConcurrentSyncs").help(workers!("Pods on tainted devices")).without_effect().check(checks::positive),
        ],
    },
    AbsentSettings {
        controller: "resourceclaim-controller",
        rows: &[
            Row::new("concurrent-resourceclaim-syncs", "Resourceclaim-controller", Initial::Int32(50)).path("ResourceClaimController.ConcurrentSyncs").help(workers!("ResourceClaims")).without_effect().check(checks::positive),
        ],
    },
    AbsentSettings {
        controller: "node-ipam-controller",
        rows: &[
            Row::new("node-cidr-mask-size", "Node-ipam-controller", Initial::Int32(0)).path("NodeIPAMController.NodeCIDRMaskSize").help("Prefix length of a node's pod CIDR in a single-stack cluster. 0: 24 for IPv4, 64 for IPv6.").without_effect(),
            Row::new("node-cidr-mask-size-ipv4", "Node-ipam-controller", Initial::Int32(0)).path("NodeIPAMController.NodeCIDRMaskSizeIPv4").help("Prefix length of a node's IPv4 CIDR in a dual-stack cluster. 0: 24.").without_effect(),
            Row::new("node-cidr-mask-size-ipv6", "Node-ipam-controller", Initial::Int32(0)).path("NodeIPAMController.NodeCIDRMaskSizeIPv6").help("Prefix length of a node's IPv6 CIDR in a dual-stack cluster. 0: 64.").without_effect(),
            Row::new("service-cluster-ip-range", "Node-ipam-controller", Initial::String("")).path("NodeIPAMController.ServiceCIDR").help("Service CIDRs, one or one per IP family. They are never assigned to nodes. Used with --allocate-node-cidrs.").without_effect().check(at_most_two),
            Row::in_file("NodeIPAMController.SecondaryServiceCIDR", "Node-ipam-controller", Initial::String("")).help("Second CIDR of --service-cluster-ip-range.").without_effect(),
        ],
    },
    AbsentSettings {
        controller: "node-lifecycle-controller",
        rows: &[
            Row::new("large-cluster-size-threshold", "Node-lifecycle-controller", Initial::Int32(50)).path("NodeLifecycleController.LargeClusterSizeThreshold").help("A zone with more nodes than this is large. In an unhealthy zone that is not large, no pods are evicted.").without_effect(),
            Row::new("node-eviction-rate", "Node-lifecycle-controller", Initial::Float32(0.1)).path("NodeLifecycleController.NodeEvictionRate").help("Failed nodes per second whose pods are evicted, in a healthy zone.").without_effect(),
            Row::new("node-monitor-grace-period", "Node-lifecycle-controller", Initial::Duration(GoDuration::from_secs(50))).path("NodeLifecycleController.NodeMonitorGracePeriod").help("Time without a heartbeat after which a node is marked unhealthy. Choose several times the kubelets' report interval.").without_effect(),
            Row::new("node-monitor-period", "Node-lifecycle-controller", Initial::Duration(GoDuration::from_secs(5))).path("NodeLifecycleController.NodeMonitorPeriod").help("Interval at which the status of all nodes is checked.").without_effect(),
            Row::new("node-startup-grace-period", "Node-lifecycle-controller", Initial::Duration(GoDuration::from_secs(60))).path("NodeLifecycleController.NodeStartupGracePeriod").help("Time without a heartbeat after which a starting node is marked unhealthy.").without_effect(),
            Row::new("secondary-node-eviction-rate", "Node-lifecycle-controller", Initial::Float32(0.01)).path("NodeLifecycleController.SecondaryNodeEvictionRate").help("Failed nodes per second whose pods are evicted, in a large unhealthy zone.").without_effect(),
            Row::new("unhealthy-zone-threshold", "Node-lifecycle-controller", Initial::Float32(0.55)).path("NodeLifecycleController.UnhealthyZoneThreshold").help("Fraction of NotReady nodes from which a zone is unhealthy, if they are at least 3.").without_effect(),
            Row::in_file("NodeLifecycleController.PodEvictionTimeout", "Node-lifecycle-controller", Initial::Duration(GoDuration::ZERO)).help("Grace period for evictions in old versions. No effect."),
        ],
    },
];

/// Refuses more than two ranges. The user of the value checks the ranges, because upstream accepts any text while nodes
/// get no ranges.
fn at_most_two(value: &Value) -> Result<(), String> {
    let fits = matches!(value, Value::String(ranges) if ranges.split(',').count() <= 2);
    if fits { Ok(()) } else { Err("must be at most two ranges".to_owned()) }
}
