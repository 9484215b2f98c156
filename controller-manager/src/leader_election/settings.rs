//! The settings of leader election; `validation.rs` says what does not go together.

use kcm_config::GoDuration;
use kcm_framework::api::ObjectKey;
use serde::Deserialize;

use super::Timing;

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
    /// The periods.
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
