//! The status of a policy after its check.

use serde_json::json;

use crate::validatingadmissionpolicy_status::status::{body, is_due};
use crate::validatingadmissionpolicy_status::warnings::Warning;

#[test]
fn checks_a_policy_whose_spec_is_newer() {
    for (generation, observed, due) in [(1, 0, true), (2, 1, true), (1, 1, false), (1, 2, false), (0, 0, false)] {
        assert_eq!(is_due(generation, observed), due, "{generation} {observed}");
    }
}

#[test]
fn writes_the_end_of_a_check_without_warnings() {
    let expected = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "a", "uid": "6b2c"},
        "status": {"observedGeneration": 3, "typeChecking": {}},
    });
    assert_eq!(body("a", "6b2c", 3, &[]), expected);
}

#[test]
fn writes_warnings_in_their_order() {
    let warning = |field: &str| Warning { field_ref: field.to_owned(), warning: format!("about {field}\n") };
    let body = body("a", "6b2c", 3, &[warning("b"), warning("a")]);
    let expected = json!({"expressionWarnings": [
        {"fieldRef": "b", "warning": "about b\n"},
        {"fieldRef": "a", "warning": "about a\n"},
    ]});
    assert_eq!(body["status"]["typeChecking"], expected);
    assert!(body["metadata"].get("resourceVersion").is_none() && body["status"].get("conditions").is_none());
}
