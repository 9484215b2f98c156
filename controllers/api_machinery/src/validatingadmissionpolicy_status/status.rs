//! The status of a policy after its check.

use serde_json::{Value, json};

use super::warnings::Warning;

/// Field manager of the server-side apply.
pub const FIELD_MANAGER: &str = "validatingadmissionpolicy-status";

/// Returns `true` if a policy must be checked: its spec is newer than the spec that was checked last.
#[must_use]
pub fn is_due(generation: i64, observed: i64) -> bool {
    generation > observed
}

/// Returns the body of the server-side apply for the sub-resource `status`.
///
/// It has the uid, so that a policy recreated under the name is not written, but no resource version and no conditions.
/// Clients see by `typeChecking` that the check is done, so the field is
/// there without warnings too.
#[must_use]
pub fn body(name: &str, uid: &str, generation: i64, warnings: &[Warning]) -> Value {
    let warnings: Vec<Value> =
        warnings.iter().map(|warning| json!({"fieldRef": warning.field_ref, "warning": warning.warning})).collect();
    let checked = if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "uid": uid},
        "status": {"observedGeneration": generation, "typeChecking": checked},
    })
}
