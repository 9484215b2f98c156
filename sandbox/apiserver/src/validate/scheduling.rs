//! Affinity, tolerations, taints, topology spread constraints and scheduling gates.
//!
//! # Upstream
//! `validateAffinity`, `ValidateTolerations` and `validateTopologySpreadConstraints` of `pkg/apis/core/validation`

use std::collections::{BTreeMap, BTreeSet};

use super::field_path::{Errors, FieldPath};
use super::{names, selector};
use crate::status::FieldError;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn affinity(affinity: &FieldPath<'_, '_>, errors: &mut Errors) {
    if affinity.is_absent() {
        return;
    }
    let nodes = affinity.get("nodeAffinity");
    let required = nodes.get(REQUIRED);
    if required.is_given() {
        node_selector(&required, errors);
    }
    for term in nodes.get(PREFERRED).items() {
        weight(&term, errors);
        node_term(&term.get("preference"), errors);
    }
    for pods in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.get(pods);
        for term in pods.get(REQUIRED).items() {
            pod_term(&term, errors);
        }
        for term in pods.get(PREFERRED).items() {
            weight(&term, errors);
            pod_term(&term.get("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &FieldPath<'_, '_>, errors: &mut Errors) {
    let weight = term.get("weight").number().unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.push(term.get("weight").refused(weight, "must be in the range 1-100"));
    }
}

pub(super) fn node_selector(node_selector: &FieldPath<'_, '_>, errors: &mut Errors) {
    let terms = node_selector.get("nodeSelectorTerms");
    terms.must_be_set("must have at least one node selector term", errors);
    for term in terms.items() {
        node_term(&term, errors);
    }
}

fn node_term(term: &FieldPath<'_, '_>, errors: &mut Errors) {
    for requirement in term.get("matchExpressions").items() {
        selector::of_nodes(&requirement, errors);
    }
    for requirement in term.get("matchFields").items() {
        let (operator, key, values) = (requirement.get("operator"), requirement.get("key"), requirement.get("values"));
        match operator.text() {
            "In" | "NotIn" => {
                if values.list().len() != 1 {
                    errors.push(
                        values.required(
                            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                        ),
                    );
                }
            }
            text => errors.push(operator.refused(text, "not a valid selector operator")),
        }
        if key.text() == "metadata.name" {
            for value in values.items() {
                value.follows(names::subdomain, errors);
            }
        } else {
            errors.push(key.refused(key.text(), "not a valid field selector key"));
        }
    }
}

fn pod_term(term: &FieldPath<'_, '_>, errors: &mut Errors) {
    selector::check(&term.get("labelSelector"), errors);
    selector::check(&term.get("namespaceSelector"), errors);
    for namespace in term.get("namespaces").items() {
        let shown = term.get("namespace");
        shown.holding(namespace.value).follows(names::label, errors);
    }
    let key = term.get("topologyKey");
    key.must_be_set("can not be empty", errors);
    key.follows(names::qualified, errors);
}

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) fn tolerations(tolerations: &FieldPath<'_, '_>, errors: &mut Errors) {
    for toleration in tolerations.items() {
        let (key, operator, value) = (toleration.get("key"), toleration.get("operator"), toleration.get("value"));
        if !key.is_empty() {
            key.follows(names::qualified, errors);
        } else if operator.text() != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(operator.refused(operator.text(), detail));
        }
        let effect = toleration.get("effect");
        if toleration.get("tolerationSeconds").is_given() && effect.text() != "NoExecute" {
            errors.push(effect.refused(effect.text(), "effect must be 'NoExecute' when `tolerationSeconds` is set"));
        }
        match operator.text() {
            "Equal" | "" => {
                let problems = names::label_value(value.text());
                if !problems.is_empty() {
                    errors.push(operator.refused(value.text(), problems.join(";")));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => errors.push(operator.refused(value.text(), "value must be empty when `operator` is 'Exists'")),
            _ => errors.push(operator.unsupported(&["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            effect.one_of(&EFFECTS, errors);
        }
    }
}

/// The fields of a taint, in the order of the Go type.
const TAINT: [(&str, &str, &str); 4] = [
    ("Key", "key", "\"\""),
    ("Value", "value", "\"\""),
    ("Effect", "effect", "\"\""),
    ("TimeAdded", "timeAdded", "null"),
];

pub(super) fn taints(taints: &FieldPath<'_, '_>, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for taint in taints.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        key.follows(names::qualified, errors);
        value.follows(names::label_value, errors);
        effect.must_be_one_of(&EFFECTS, errors);
        if !known.insert((effect.text(), key.text())) {
            let text = super::go_format::go(taint.value, &TAINT);
            errors.push(FieldError::duplicate_shown(
                taint.to_string(),
                text,
                "taints must be unique by key and effect pair",
            ));
        }
    }
}

/// The key that constraints are unique by.
fn key_and_action<'v>(constraint: &FieldPath<'v, '_>) -> (&'v str, &'v str) {
    (constraint.get("topologyKey").text(), constraint.get("whenUnsatisfiable").text())
}

pub(super) fn spread(constraints: &FieldPath<'_, '_>, errors: &mut Errors) {
    let last: BTreeMap<(&str, &str), usize> =
        constraints.items().enumerate().map(|(index, constraint)| (key_and_action(&constraint), index)).collect();
    for (index, constraint) in constraints.items().enumerate() {
        let (skew, key, action) =
            (constraint.get("maxSkew"), constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"));
        if skew.number().unwrap_or(0) <= 0 {
            errors.push(skew.refused(skew.number().unwrap_or(0), "must be greater than zero"));
        }
        if key.is_empty() {
            errors.push(key.required("can not be empty"));
        } else {
            key.follows(names::qualified, errors);
        }
        if !matches!(action.text(), "DoNotSchedule" | "ScheduleAnyway") {
            errors.push(action.unsupported(&["DoNotSchedule", "ScheduleAnyway"]));
        }
        if last.get(&key_and_action(&constraint)).is_some_and(|last| *last > index) {
            let field = constraint.get("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(field.to_string(), format!("{{{}, {}}}", key.text(), action.text())));
        }
        let domains = constraint.get("minDomains");
        if domains.is_given() {
            if domains.number().unwrap_or(0) <= 0 {
                errors.push(domains.invalid("must be greater than zero"));
            }
            if action.text() != "DoNotSchedule" {
                errors.push(domains.invalid(format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                    action.text()
                )));
            }
        }
        selector::check(&constraint.get("labelSelector"), errors);
    }
}

pub(super) fn gates(spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for gate in spec.get("schedulingGates").items() {
        let name = gate.get("name").text();
        gate.refuse(name, names::qualified, errors);
        if !known.insert(name) {
            errors.push(FieldError::duplicate(gate.to_string(), name));
        }
    }
}
