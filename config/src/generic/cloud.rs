//! The settings that controllers share about nodes, addresses and the cloud.

use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

const SECTION: &str = "Generic";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("allocate-node-cidrs", SECTION, Initial::Bool(false))
        .path("KubeCloudShared.AllocateNodeCIDRs")
        .help("Assign a pod CIDR from --cluster-cidr to each node."),
    Row::new("allow-untagged-cloud", SECTION, Initial::Bool(false))
        .path("KubeCloudShared.AllowUntaggedCloud")
        .help("Run on cloud instances without a cluster ID.")
        .deprecated("cloud instances need a cluster ID"),
    Row::new("cidr-allocator-type", SECTION, Initial::String("RangeAllocator"))
        .path("KubeCloudShared.CIDRAllocatorType")
        .help("Method of allocating node CIDRs. Only RangeAllocator is supported.")
        .check(allocator),
    Row::new("cloud-config", SECTION, Initial::String(""))
        .path("KubeCloudShared.CloudProvider.CloudConfigFile")
        .help("Configuration file of the cloud provider. Empty: none."),
    Row::new("cloud-provider", SECTION, Initial::String(""))
        .path("KubeCloudShared.CloudProvider.Name")
        .help("\"external\" if a cloud-controller-manager runs in the cluster; otherwise empty.")
        .check(provider),
    Row::new("cluster-cidr", SECTION, Initial::String(""))
        .path("KubeCloudShared.ClusterCIDR")
        .help("Pod CIDRs of the cluster: one, or one IPv4 and one IPv6. Used with --allocate-node-cidrs."),
    Row::new("cluster-name", SECTION, Initial::String("kubernetes"))
        .path("KubeCloudShared.ClusterName")
        .help("Name of the cluster: the prefix of its resources in the cloud."),
    Row::new("configure-cloud-routes", SECTION, Initial::Bool(true))
        .path("KubeCloudShared.ConfigureCloudRoutes")
        .help("Create cloud routes for the CIDRs of --allocate-node-cidrs."),
    Row::new("external-cloud-volume-plugin", SECTION, Initial::String(""))
        .path("KubeCloudShared.ExternalCloudVolumePlugin")
        .help("In-tree volume plugin to use with --cloud-provider=external. Empty: none."),
    Row::new("node-sync-period", SECTION, Initial::Duration(GoDuration::ZERO))
        .path("KubeCloudShared.NodeSyncPeriod")
        .help("No effect.")
        .deprecated("it has no effect; see --node-monitor-period and --route-reconciliation-period"),
    Row::new("route-reconciliation-period", SECTION, Initial::Duration(GoDuration::from_secs(10)))
        .path("KubeCloudShared.RouteReconciliationPeriod")
        .help("Interval at which cloud routes are compared with the nodes."),
    Row::new("use-service-account-credentials", SECTION, Initial::Bool(false))
        .path("KubeCloudShared.UseServiceAccountCredentials")
        .help("Run each controller with its own service account."),
];

/// Upstream removed built-in cloud providers and their allocator with 1.31 (KEP-2395).
fn allocator(value: &Value) -> Result<(), String> {
    checks::one_of(value, &["RangeAllocator", ""])
}

fn provider(value: &Value) -> Result<(), String> {
    checks::one_of(value, &["external", ""])
        .map_err(|reason| format!("{reason}: there are no built-in cloud providers since Kubernetes 1.31"))
}
