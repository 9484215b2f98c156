//! Updates of pods.
//!
//! # Upstream
//! `ValidatePodUpdate` of `pkg/apis/core/validation`. The difference of the internal types, which follows the message
//! there, is left out.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use super::field_path::{Errors, FieldPath};
use crate::json::{at, list, set, text};

const MAY_NOT: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn check(old: &Value, new: &Value, errors: &mut Errors) {
    if old.get("spec") == new.get("spec") {
        return;
    }
    let field_path = FieldPath::root(new);
    let spec = field_path.get("spec");
    for field in ["containers", "initContainers"] {
        if list(old, &["spec", field]).len() != list(new, &["spec", field]).len() {
            errors.push(spec.get(field).forbidden("pod updates may not add or remove containers"));
            return;
        }
    }
    deadline(old, &spec, errors);
    let was_gated = !list(old, &["spec", "schedulingGates"]).is_empty();
    gates(old, &spec, errors);
    if spec.get("nodeName").is_given()
        && !spec.get("schedulingGates").is_empty()
        && at(old, &["spec", "nodeName"]).is_none()
    {
        errors.push(spec.get("nodeName").forbidden("cannot be set until all schedulingGates have been cleared"));
    }
    tolerations(old, &spec, errors);
    if !errors.is_empty() {
        return;
    }
    let (before, after) = (fixed(old, was_gated), fixed(new, was_gated));
    let grace = |spec: &Value| at(spec, &["terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    let may_end = grace(&before).is_some_and(|seconds| seconds < 0) && grace(&after) == Some(1);
    let without_grace = |mut spec: Value| {
        set(&mut spec, &["terminationGracePeriodSeconds"], None);
        spec
    };
    let differs = if may_end { without_grace(before) != without_grace(after) } else { before != after };
    if differs {
        errors.push(spec.forbidden(MAY_NOT));
    }
}

/// The spec without the fields that may change.
fn fixed(pod: &Value, was_gated: bool) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        set(&mut spec, &[field], None);
    }
    if was_gated {
        // Constraints of gated pods may be tightened.
        set(&mut spec, &["nodeSelector"], None);
        set(&mut spec, &["affinity", "nodeAffinity"], None);
        if spec.get("affinity") == Some(&json!({})) {
            set(&mut spec, &["affinity"], None);
        }
    }
    for containers in ["containers", "initContainers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            set(container, &["image"], None);
        }
    }
    spec
}

fn deadline(old: &Value, spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let Some(before) = at(old, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64) else { return };
    let after = spec.get("activeDeadlineSeconds");
    match after.number() {
        None => errors.push(after.invalid("must not update from a positive integer to nil value")),
        Some(number) if number > before => errors.push(after.invalid("must be less than or equal to previous value")),
        Some(_) => {}
    }
}

fn gates(old: &Value, spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let known: BTreeSet<Option<&str>> =
        list(old, &["spec", "schedulingGates"]).iter().map(|gate| text(gate, &["name"])).collect();
    for gate in spec.get("schedulingGates").items() {
        if !known.contains(&text(gate.value, &["name"])) {
            let name = gate.get("name");
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", name.text());
            errors.push(name.forbidden(&detail));
        }
    }
}

/// Refuses changes of tolerations other than additions and other `tolerationSeconds`.
fn tolerations(old: &Value, spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let without_time = |toleration: &Value| {
        let mut toleration = toleration.clone();
        set(&mut toleration, &["tolerationSeconds"], None);
        toleration
    };
    let after: HashSet<Value> = spec.get("tolerations").list().iter().map(without_time).collect();
    let kept = list(old, &["spec", "tolerations"]).iter().all(|before| after.contains(&without_time(before)));
    if !kept {
        errors.push(
            spec.get("tolerations").forbidden("existing toleration can not be modified except its tolerationSeconds"),
        );
    }
}
