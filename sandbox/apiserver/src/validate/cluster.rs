//! Nodes, leases, events, limits and quotas.
//!
//! # Upstream
//! `pkg/apis/core/validation`, `pkg/apis/coordination/validation`

use std::collections::BTreeSet;

use serde_json::Value;

use super::field_path::{Errors, FieldPath};
use super::{names, resources, scheduling};
use crate::json::at;
use crate::quantity::Quantity;
use crate::status::FieldError;

pub(super) fn node(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let spec = object.get("spec");
    // Upstream reports taints as if they were metadata.
    let taints = object.named("metadata.taints").holding(spec.get("taints").value);
    scheduling::taints(&taints, errors);
    for amounts in ["capacity", "allocatable"] {
        let status = object.get("status");
        let list = status.get(amounts);
        for (resource, amount) in list.entries() {
            let shown = list.get(resource).holding(amount.value);
            resources::amount(resource, &shown, errors);
        }
    }
    let blocks = spec.get("podCIDRs");
    let known = |block: &FieldPath<'_, '_>| names::network(block.text()).is_some();
    for block in blocks.items() {
        if !known(&block) {
            block.follows(names::cidr, errors);
        }
    }
}

pub(super) fn node_change(old: &Value, new: &Value, errors: &mut Errors) {
    let root = FieldPath::root(new);
    let before = at(old, &["spec", "podCIDRs"]);
    if before.is_some() && before != Some(root.get("spec.podCIDRs").value) {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(root.get("spec.podCIDRs").forbidden(detail));
    }
    let provider = at(old, &["spec", "providerID"]);
    if provider.is_some() && provider != Some(root.get("spec.providerID").value) {
        let detail = "field cannot be modified once set";
        errors.push(FieldError::invalid("spec.providerID", Value::Null, detail));
    }
}

pub(super) fn lease(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    object.get("spec.leaseDurationSeconds").refuse_number(|seconds| seconds <= 0, "must be greater than 0", errors);
    object.get("spec.leaseTransitions").not_negative(errors);
}

/// Kinds that are cluster-scoped; their events may be in `default` or `kube-system`.
const CLUSTER_SCOPED: [&str; 3] = ["Node", "Namespace", "PersistentVolume"];

pub(super) fn event(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let about = object.get("involvedObject.namespace");
    let here = object.get("metadata.namespace").text();
    let is_in_default = here == "default" && about.is_empty();
    let is_cluster_scoped = CLUSTER_SCOPED.contains(&object.get("involvedObject.kind").text());
    if about.text() != here && !is_in_default && !(is_cluster_scoped && matches!(here, "default" | "kube-system")) {
        errors.push(about.refused(about.text(), "does not match event.namespace"));
    }
    if object.get("eventTime").is_absent() {
        return;
    }
    let controller = object.get("reportingComponent");
    controller.must_be_set("", errors);
    controller.follows(names::qualified, errors);
    object.must_have(&["reportingInstance", "action", "reason"], errors);
}

/// Lower and upper bounds: their fields and names, whether the error is about the upper one, and whether it shows the
/// upper amount.
const PAIRS: [(&str, &str, &str, &str, bool, bool); 5] = [
    ("min", "max", "min value", "max value", false, false),
    ("min", "defaultRequest", "min value", "default request value", true, true),
    ("min", "default", "min value", "default value", true, false),
    ("defaultRequest", "max", "default request value", "max value", false, false),
    ("default", "max", "default value", "max value", false, true),
];

pub(super) fn limit_range(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    let limits = object.get("spec.limits");
    for item in limits.items() {
        let kind = item.get("type");
        kind.follows(names::qualified, errors);
        kind.must_be_new(&mut known, errors);
        if kind.text() == "Pod" {
            for field in ["default", "defaultRequest"] {
                if !item.get(field).is_empty() {
                    errors.push(item.get(field).forbidden("may not be specified when `type` is 'Pod'"));
                }
            }
        }
        let rule = if kind.text() == "Container" { resources::container_name } else { resources::name };
        for field in ["max", "min", "default", "defaultRequest"] {
            for (resource, amount) in item.get(field).entries() {
                amount.refuse(resource, rule, errors);
            }
        }
        for (lower, upper, lower_name, upper_name, about_upper, shows_upper) in PAIRS {
            let (low, high) = (item.get(lower), item.get(upper));
            for (resource, amount) in low.entries() {
                let (Some(least), Some(most)) = (Quantity::of(amount.value), Quantity::of(high.key(resource).value))
                else {
                    continue;
                };
                if least.compare(most).is_gt() {
                    let field_path = if about_upper { high.key(resource) } else { amount };
                    let shown = if shows_upper { most } else { least };
                    let detail = format!("{lower_name} {least} is greater than {upper_name} {most}");
                    errors.push(field_path.refused(shown.to_string(), detail));
                }
            }
        }
    }
}

const SCOPES: [&str; 6] =
    ["Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"];

pub(super) fn quota(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let hard = object.get("spec.hard");
    for (resource, amount) in hard.entries() {
        amount.refuse(resource, resources::quota_name, errors);
        resources::amount(resource, &amount, errors);
    }
    let scopes = object.get("spec.scopes");
    let has = |scope: &str| scopes.list().iter().any(|given| given == scope);
    if scopes.list().iter().any(|scope| !SCOPES.contains(&scope.as_str().unwrap_or_default())) {
        errors.push(scopes.invalid("unsupported scope"));
    }
    if (has("BestEffort") && has("NotBestEffort")) || (has("Terminating") && has("NotTerminating")) {
        errors.push(scopes.invalid("conflicting scopes"));
    }
}

/// Checks that the phase of a namespace agrees with its deletion timestamp.
pub(super) fn namespace_status(namespace: &Value, errors: &mut Errors) {
    let phase = crate::json::text(namespace, &["status", "phase"]).unwrap_or_default();
    let (expected, deleted) =
        if crate::json::is_terminating(namespace) { ("Terminating", "is not empty") } else { ("Active", "is empty") };
    if phase != expected {
        let detail = format!("may only be '{expected}' if `deletionTimestamp` {deleted}");
        errors.push(FieldError::invalid("status.Phase", phase, detail));
    }
}

/// The base64 of the start of each PEM-encoded certificate request.
const REQUEST_START: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0t";

pub(super) fn certificate_request(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let request = object.get("spec.request");
    if !request.text().starts_with(REQUEST_START) {
        errors.push(request.invalid("PEM block type must be CERTIFICATE REQUEST"));
    }
}

pub(super) fn webhooks(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    for hook in object.get("webhooks").items() {
        let name = hook.get("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else {
            name.follows(names::subdomain, errors);
            if name.text().split('.').count() < 3 {
                errors.push(name.invalid("should be a domain with at least three segments separated by dots"));
            }
        }
        let effects = hook.get("sideEffects");
        if effects.is_absent() {
            errors.push(effects.required("must specify one of None, NoneOnDryRun"));
        } else {
            effects.one_of(&["None", "NoneOnDryRun"], errors);
        }
    }
}
