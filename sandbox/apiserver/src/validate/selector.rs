//! Label selectors.
//!
//! # Upstream
//! `apimachinery/pkg/apis/meta/v1/validation`

use kcm_api::{LabelSelector, Selector};
use serde::Deserialize;

use super::field_path::{Errors, FieldPath};
use super::metadata;
use super::names;

/// Checks a label selector; returns whether it is valid.
pub(super) fn check(selector: &FieldPath<'_, '_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    metadata::labels(&selector.get("matchLabels"), errors);
    for requirement in selector.get("matchExpressions").items() {
        let values = requirement.get("values");
        requirement_values(&requirement, errors);
        requirement.get("key").follows(names::qualified, errors);
        for value in values.items() {
            value.follows(names::label_value, errors);
        }
    }
    errors.len() == before
}

/// Checks the operator of a requirement against its values.
fn requirement_values(requirement: &FieldPath<'_, '_>, errors: &mut Errors) {
    let (operator, values) = (requirement.get("operator"), requirement.get("values"));
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        operator_text => errors.push(operator.refused(operator_text, "not a valid selector operator")),
    }
}

/// Checks a requirement on the labels of nodes, which has two more operators.
pub(super) fn of_nodes(requirement: &FieldPath<'_, '_>, errors: &mut Errors) {
    let values = requirement.get("values");
    if matches!(requirement.get("operator").text(), "Gt" | "Lt") {
        if values.list().len() != 1 {
            errors.push(values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
    } else {
        requirement_values(requirement, errors);
    }
    requirement.get("key").follows(names::qualified, errors);
}

/// Returns the parsed selector; `None` if it is invalid.
pub(super) fn parse(selector: &FieldPath<'_, '_>) -> Option<Selector> {
    // A missing selector is none, and not one without requirements.
    let parsed = Option::<LabelSelector>::deserialize(selector.value).ok()??;
    Selector::try_from(&parsed).ok()
}
