//! The settings of leader election.

use crate::duration::GoDuration;
use crate::row::{Initial, Row};

const SECTION: &str = "Generic";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("leader-elect", SECTION, Initial::Bool(true)).path("Generic.LeaderElection.leaderElect").help("Acquire a lease before controllers run, so that only one of several replicas acts."),
    Row::new("exit-on-lost-lease", SECTION, Initial::Bool(true)).help("Exit if the lease is lost. If false, stop the controllers, keep the caches and compete again."),
    Row::new("leader-elect-warm-standby", SECTION, Initial::Bool(true)).help("Fill the caches before this replica leads, so that it takes over without delay. If false, a standby replica needs little memory."),
    Row::new("leader-elect-lease-duration", SECTION, Initial::Duration(GoDuration::from_secs(15))).path("Generic.LeaderElection.leaseDuration").help("Time without a renewal after which another replica may take the lease: the longest time without a leader after a crash."),
    Row::new("leader-elect-renew-deadline", SECTION, Initial::Duration(GoDuration::from_secs(10))).path("Generic.LeaderElection.renewDeadline").help("Time for which the leader tries to renew the lease before it stops acting. Must be less than --leader-elect-lease-duration."),
    Row::new("leader-elect-resource-lock", SECTION, Initial::String("leases")).path("Generic.LeaderElection.resourceLock").help("Kind of the lock object. Only leases is supported."),
    Row::new("leader-elect-resource-name", SECTION, Initial::String("kube-controller-manager")).path("Generic.LeaderElection.resourceName").help("Name of the lease."),
    Row::new("leader-elect-resource-namespace", SECTION, Initial::String("kube-system")).path("Generic.LeaderElection.resourceNamespace").help("Namespace of the lease."),
    Row::new("leader-elect-retry-period", SECTION, Initial::Duration(GoDuration::from_secs(2))).path("Generic.LeaderElection.retryPeriod").help("Time between two attempts to acquire or renew the lease."),
];
