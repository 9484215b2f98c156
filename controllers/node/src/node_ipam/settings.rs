//! The settings of this controller.

use kcm_framework::config::{Section, Setting, Value};

const SECTION: Section = Section::new("Node-ipam-controller", "NodeIPAMController");
/// The section of settings that several controllers read. Their rows belong to the manager.
const SHARED: Section = Section::new("Generic", "KubeCloudShared");

pub(super) const ALLOCATE: Setting<bool> =
    SHARED.bool("allocate-node-cidrs", "AllocateNodeCIDRs", false).help("Assign a pod CIDR to each node.");
pub(super) const CLUSTER_CIDR: Setting<String> =
    SHARED.string("cluster-cidr", "ClusterCIDR", "").help("Pod CIDRs of the cluster.");

pub(super) const MASK_SIZE: Setting<i32> = SECTION
    .int32("node-cidr-mask-size", "NodeCIDRMaskSize", 0)
    .help("Prefix length of a node's pod CIDR in a single-stack cluster. 0: 24 for IPv4, 64 for IPv6.");
pub(super) const MASK_SIZE_IPV4: Setting<i32> = SECTION
    .int32("node-cidr-mask-size-ipv4", "NodeCIDRMaskSizeIPv4", 0)
    .help("Prefix length of a node's IPv4 CIDR in a dual-stack cluster. 0: 24.");
pub(super) const MASK_SIZE_IPV6: Setting<i32> = SECTION
    .int32("node-cidr-mask-size-ipv6", "NodeCIDRMaskSizeIPv6", 0)
    .help("Prefix length of a node's IPv6 CIDR in a dual-stack cluster. 0: 64.");
pub(super) const SERVICES: Setting<String> = SECTION
    .string("service-cluster-ip-range", "ServiceCIDR", "")
    .help("Service CIDRs, one or one per IP family. They are never assigned to nodes. Used with --allocate-node-cidrs.")
    .check(at_most_two);
pub(super) const SECOND_SERVICES: Setting<String> = SECTION
    .file_string("NodeIPAMController.SecondaryServiceCIDR", "")
    .help("Second CIDR of --service-cluster-ip-range.");

/// Refuses more than two ranges. The controller checks the ranges, because upstream accepts any text while nodes get no
/// ranges.
fn at_most_two(value: &Value) -> Result<(), String> {
    let fits = matches!(value, Value::String(ranges) if ranges.split(',').count() <= 2);
    if fits { Ok(()) } else { Err("must be at most two ranges".to_owned()) }
}
