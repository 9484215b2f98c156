//! The settings that controllers share about nodes, addresses and the cloud.

use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

const SECTION: &str = "Generic";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("allocate-node-cidrs", SECTION, Initial::Bool(false)).path("KubeCloudShared.AllocateNodeCIDRs").help("Give each node a range of pod addresses out of --cluster-cidr."),
    Row::new("allow-untagged-cloud", SECTION, Initial::Bool(false)).path("KubeCloudShared.AllowUntaggedCloud").help("Run on cloud instances that carry no cluster ID.").deprecated("cloud instances need a cluster ID"),
    Row::new("cidr-allocator-type", SECTION, Initial::String("RangeAllocator")).path("KubeCloudShared.CIDRAllocatorType").help("What gives nodes their ranges of pod addresses: 'RangeAllocator', the only one without a built-in cloud provider.").check(allocator),
    Row::new("cloud-config", SECTION, Initial::String("")).path("KubeCloudShared.CloudProvider.CloudConfigFile").help("The configuration file of the cloud provider; empty for none."),
    Row::new("cloud-provider", SECTION, Initial::String("")).path("KubeCloudShared.CloudProvider.Name").help("The cloud provider: 'external' where a cloud controller manager runs, empty for none.").check(provider),
    Row::new("cluster-cidr", SECTION, Initial::String("")).path("KubeCloudShared.ClusterCIDR").help("The ranges of pod addresses, one or one of each IP family; for --allocate-node-cidrs."),
    Row::new("cluster-name", SECTION, Initial::String("kubernetes")).path("KubeCloudShared.ClusterName").help("The name of the cluster, which begins the names of what is made for it in the cloud."),
    Row::new("configure-cloud-routes", SECTION, Initial::Bool(true)).path("KubeCloudShared.ConfigureCloudRoutes").help("Let the cloud provider route the ranges that nodes get by --allocate-node-cidrs."),
    Row::new("external-cloud-volume-plugin", SECTION, Initial::String("")).path("KubeCloudShared.ExternalCloudVolumePlugin").help("The in-tree volume plugin to use beside --cloud-provider=external; empty for none."),
    Row::new("node-monitor-period", SECTION, Initial::Duration(GoDuration::from_secs(5))).path("KubeCloudShared.NodeMonitorPeriod").help("How often the state of nodes is looked at."),
    Row::new("node-sync-period", SECTION, Initial::Duration(GoDuration::ZERO)).path("KubeCloudShared.NodeSyncPeriod").help("It has no effect, as upstream.").deprecated("it has no effect; see --node-monitor-period and --route-reconciliation-period"),
    Row::new("route-reconciliation-period", SECTION, Initial::Duration(GoDuration::from_secs(10))).path("KubeCloudShared.RouteReconciliationPeriod").help("How often the routes of nodes in the cloud are compared with the nodes."),
    Row::new("use-service-account-credentials", SECTION, Initial::Bool(false)).path("KubeCloudShared.UseServiceAccountCredentials").help("Give each controller the credentials of its own service account."),
];

/// Built-in cloud providers left upstream with 1.31 (KEP-2395), and their allocator with them.
fn allocator(value: &Value) -> Result<(), String> {
    checks::one_of(value, &["RangeAllocator", ""])
}

fn provider(value: &Value) -> Result<(), String> {
    checks::one_of(value, &["external", ""])
        .map_err(|reason| format!("{reason}: there are no built-in cloud providers since Kubernetes 1.31"))
}
