//! The settings of leader election; `settings/validation.rs` checks their combinations.

use std::collections::BTreeSet;
use std::time::Duration;

use kcm_config::GoDuration;
use kcm_framework::api::ObjectKey;
use kcm_framework::client::Limits;
use serde::Deserialize;

use super::elector::Timing;

/// Leader election, and the consequences of a lost lease.
pub(crate) struct Election {
    /// The lease and its periods.
    pub(crate) settings: LeaderElection,
    /// Behaviour of the manager without the lease.
    pub(crate) policy: Policy,
    /// The limits of the requests for each lease.
    pub(crate) limits: Limits,
    /// Whether leases are released at the end.
    pub(crate) releases: bool,
    /// The lease of leader migration, if it is enabled.
    pub(crate) migration: Option<MigrationSettings>,
}

/// Behaviour of a manager without the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Whether the caches are filled before the lease is acquired.
    pub(crate) warm_standby: bool,
    /// Whether a lost lease ends the process, as upstream; otherwise its loops stop, and it competes again.
    pub(crate) exit_on_lost_lease: bool,
    /// Time for which running reconciles may finish when the loops stop.
    pub(crate) grace: Duration,
}

/// The lease of leader migration, and the controllers that run under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MigrationSettings {
    /// Name of the lease. It is in the namespace of the main lease.
    pub(crate) lease: String,
    /// The controllers that run under it, by canonical name.
    pub(crate) controllers: BTreeSet<String>,
}

/// `Generic.LeaderElection` of the configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeaderElection {
    /// Whether there is leader election at all.
    pub(crate) leader_elect: bool,
    lease_duration: GoDuration,
    renew_deadline: GoDuration,
    retry_period: GoDuration,
    resource_name: String,
    resource_namespace: String,
}

impl LeaderElection {
    /// Returns the periods of leader election.
    pub(crate) fn timing(&self) -> Timing {
        Timing {
            lease_duration: self.lease_duration.unsigned(),
            renew_deadline: self.renew_deadline.unsigned(),
            retry_period: self.retry_period.unsigned(),
        }
    }

    /// Namespace and name of the lease.
    pub(crate) fn lease(&self) -> ObjectKey {
        ObjectKey::namespaced(self.resource_namespace.as_str(), self.resource_name.as_str())
    }
}
