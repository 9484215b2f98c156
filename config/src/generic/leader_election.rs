//! The settings of leader election.

use crate::duration::GoDuration;
use crate::row::{Initial, Row};

const SECTION: &str = "Generic";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("leader-elect", SECTION, Initial::Bool(true)).path("Generic.LeaderElection.leaderElect").help("Take the lease before running controllers, so that of several replicas only one acts."),
    Row::new("exit-on-lost-lease", SECTION, Initial::Bool(true)).help("End the process when its lease is lost. Otherwise its controllers stop, its caches stay, and it competes for the lease again."),
    Row::new("leader-elect-warm-standby", SECTION, Initial::Bool(true)).help("Fill the caches before the lease is acquired, so that this replica acts as soon as it leads. Otherwise one that waits holds nothing."),
    Row::new("leader-elect-lease-duration", SECTION, Initial::Duration(GoDuration::from_secs(15))).path("Generic.LeaderElection.leaseDuration").help("How long a replica that waits leaves a lease alone that is not renewed, and so the longest time without a leader."),
    Row::new("leader-elect-renew-deadline", SECTION, Initial::Duration(GoDuration::from_secs(10))).path("Generic.LeaderElection.renewDeadline").help("How long the leader tries to renew the lease before it stops acting; less than --leader-elect-lease-duration."),
    Row::new("leader-elect-resource-lock", SECTION, Initial::String("leases")).path("Generic.LeaderElection.resourceLock").help("The kind of the object that is the lock: 'leases'."),
    Row::new("leader-elect-resource-name", SECTION, Initial::String("kube-controller-manager")).path("Generic.LeaderElection.resourceName").help("The name of the lease."),
    Row::new("leader-elect-resource-namespace", SECTION, Initial::String("kube-system")).path("Generic.LeaderElection.resourceNamespace").help("The namespace of the lease."),
    Row::new("leader-elect-retry-period", SECTION, Initial::Duration(GoDuration::from_secs(2))).path("Generic.LeaderElection.retryPeriod").help("How long a replica waits between two attempts to take or renew the lease."),
];
