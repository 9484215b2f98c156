//! Of the cluster as a whole.

use super::AbsentSettings;
use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[
    AbsentSettings {
        controller: "resourcequota-controller",
        rows: &[
            Row::new("concurrent-resource-quota-syncs", "Resourcequota-controller", Initial::Int32(5)).path("ResourceQuotaController.ConcurrentResourceQuotaSyncs").help("How many resource quotas are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
            Row::new("resource-quota-sync-period", "Resourcequota-controller", Initial::Duration(GoDuration::from_secs(5 * 60))).path("ResourceQuotaController.ResourceQuotaSyncPeriod").help("How often the usage of every quota is counted again."),
        ],
    },
    AbsentSettings {
        controller: "validatingadmissionpolicy-status-controller",
        rows: &[
            Row::new("concurrent-validating-admission-policy-status-syncs", "Validatingadmissionpolicy-status-controller", Initial::Int32(5)).path("ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs").help("How many validating admission policies are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
        ],
    },
];
