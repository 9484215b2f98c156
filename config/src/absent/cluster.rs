//! Of the cluster as a whole.

use super::AbsentSettings;
use crate::checks;
use crate::row::{Initial, Row};

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[AbsentSettings {
    controller: "validatingadmissionpolicy-status-controller",
    rows: &[Row::new(
        "concurrent-validating-admission-policy-status-syncs",
        "Validatingadmissionpolicy-status-controller",
        Initial::Int32(5),
    )
    .path("ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs")
    .help(workers!("ValidatingAdmissionPolicies"))
    .without_effect()
    .check(checks::positive)],
}];
