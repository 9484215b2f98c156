//! Roles and bindings, priority classes.
//!
//! # Upstream
//! `pkg/apis/rbac/validation`, `pkg/apis/scheduling/validation`

use serde_json::Value;

use super::field_path::{Errors, FieldPath, immutable};
use super::{go_format, names};

pub(super) fn role(is_namespaced: bool, object: &FieldPath<'_, '_>, errors: &mut Errors) {
    for rule in object.get("rules").items() {
        rule.get("verbs").must_be_set("", errors);
        let urls = rule.get("nonResourceURLs");
        if !urls.is_empty() {
            if is_namespaced {
                errors.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
            }
            if !rule.get("apiGroups").is_empty() || !rule.get("resources").is_empty() {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(urls.invalid(detail));
            }
            continue;
        }
        rule.get("apiGroups").must_be_set("resource rules must supply at least one api group", errors);
        rule.get("resources").must_be_set("resource rules must supply at least one resource", errors);
    }
}

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn binding(is_namespaced: bool, object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let role = object.get("roleRef");
    role.get("apiGroup").one_of(&[GROUP], errors);
    role.get("kind").one_of(if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] }, errors);
    let name = role.get("name");
    name.must_follow(names::path_segment, errors);
    for subject in object.get("subjects").items() {
        let (name, kind) = (subject.get("name"), subject.get("kind"));
        name.must_be_set("", errors);
        match kind.text() {
            "ServiceAccount" => {
                name.may_follow(names::subdomain, errors);
                let group = subject.get("apiGroup");
                if !group.is_empty() {
                    errors.push(group.unsupported(&[""]));
                }
                if !is_namespaced && subject.get("namespace").is_empty() {
                    errors.push(subject.get("namespace").required(""));
                }
            }
            "User" | "Group" => subject.get("apiGroup").one_of(&[GROUP], errors),
            _ => errors.push(kind.unsupported(&["ServiceAccount", "User", "Group"])),
        }
    }
}

const ROLE_REF: [(&str, &str, &str); 3] =
    [("APIGroup", "apiGroup", "\"\""), ("Kind", "kind", "\"\""), ("Name", "name", "\"\"")];

pub(super) fn binding_change(old: &Value, new: &Value, errors: &mut Errors) {
    if old.get("roleRef") != new.get("roleRef") {
        let root = FieldPath::root(new);
        let role = root.get("roleRef");
        errors.push(role.shown(go_format::go(role.value, &ROLE_REF), super::field_path::IMMUTABLE));
    }
}

const HIGHEST_PRIORITY: i64 = 1_000_000_000;

pub(super) fn priority_class(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let (name, value) = (object.get("metadata.name"), object.get("value"));
    if name.text().starts_with("system-") {
        let known = ["system-node-critical", "system-cluster-critical"];
        if !known.contains(&name.text()) {
            errors.push(name.forbidden(&format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {} is not a known system priority class",
                name.text()
            )));
        }
    } else if value.number().is_some_and(|value| value > HIGHEST_PRIORITY) {
        errors.push(value.forbidden("maximum allowed value of a user defined priority is 1000000000"));
    }
    object.get("preemptionPolicy").one_of(&["PreemptLowerPriority", "Never"], errors);
}

pub(super) fn priority_class_change(old: &Value, new: &Value, errors: &mut Errors) {
    let root = FieldPath::root(new);
    let before = FieldPath::root(old);
    if root.get("value").number().unwrap_or(0) != before.get("value").number().unwrap_or(0) {
        errors.push(root.get("value").forbidden("may not be changed in an update."));
    }
    immutable(old, new, "preemptionPolicy", errors);
}
