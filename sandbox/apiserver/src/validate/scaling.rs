//! Pod disruption budgets and horizontal pod autoscalers.
//!
//! # Upstream
//! `pkg/apis/policy/validation`, `pkg/apis/autoscaling/validation`

use super::field_path::{Errors, FieldPath};
use super::workloads::{at_most_all, number_or_percent};
use super::{go_format, names, selector};
use crate::quantity::Quantity;

const BUDGET: [(&str, &str, &str); 4] = [
    ("MinAvailable", "minAvailable", "null"),
    ("Selector", "selector", "null"),
    ("MaxUnavailable", "maxUnavailable", "null"),
    ("UnhealthyPodEvictionPolicy", "unhealthyPodEvictionPolicy", "null"),
];

pub(super) fn budget(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let (min, max) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if min.is_given() && max.is_given() {
        let text = go_format::go(spec.value, &BUDGET);
        errors.push(spec.shown(text, "minAvailable and maxUnavailable cannot be both set"));
    }
    for bound in [&min, &max] {
        if bound.is_given() {
            number_or_percent(bound, errors);
            at_most_all(bound, errors);
        }
    }
    selector::check(&spec.get("selector"), errors);
    spec.get("unhealthyPodEvictionPolicy").one_of(&["AlwaysAllow", "IfHealthyBudget"], errors);
}

pub(super) fn budget_status(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let status = object.get("status");
    status.none_negative(&["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"], errors);
}

pub(super) fn autoscaler(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let metrics = spec.get("metrics");
    let (min, max) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    let least = min.number().unwrap_or(1);
    if least < 0 {
        errors.push(min.invalid("must be greater than or equal to 0"));
    }
    let most = max.number().unwrap_or(0);
    if most < 0 {
        errors.push(max.invalid("must be greater than or equal to 1"));
    }
    if most < least {
        errors.push(max.refused(most, "must be greater than or equal to `minReplicas`"));
    }
    if most == 0 {
        errors.push(max.required(""));
    }
    target(&spec.get("scaleTargetRef"), errors);
    for metric in metrics.items() {
        check_metric(&metric, errors);
    }
    let scales_from_zero = |metric: FieldPath<'_, '_>| ["Object", "External"].contains(&metric.get("type").text());
    if least == 0 && !metrics.items().any(scales_from_zero) {
        errors.push(
            metrics
                .forbidden("must specify at least one Object or External metric to support scaling to zero replicas"),
        );
    }
    for direction in ["scaleUp", "scaleDown"] {
        let behavior = spec.get("behavior");
        rules(&behavior.get(direction), errors);
    }
}

fn target(target: &FieldPath<'_, '_>, errors: &mut Errors) {
    for field in ["kind", "name"] {
        target.get(field).must_follow(names::path_segment, errors);
    }
    let version = target.get("apiVersion");
    // Of the core group, which has no name, only replication controllers scale.
    if version.is_empty() && target.get("kind").text() != "ReplicationController" {
        errors.push(version.refused("", "apiVersion must specify API group"));
    }
}

/// Types of metrics and the fields that hold them.
const METRICS: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

fn check_metric(metric: &FieldPath<'_, '_>, errors: &mut Errors) {
    let kind = metric.get("type");
    let Some((_, field)) = METRICS.iter().find(|(name, _)| *name == kind.text()) else {
        if kind.is_empty() {
            errors.push(kind.required("must specify a metric source type"));
        } else {
            let known: Vec<&str> = METRICS.iter().map(|(name, _)| *name).collect();
            // Upstream reports it twice: for the type, and for the source.
            errors.push(kind.unsupported(&known));
            errors.push(kind.unsupported(&known));
        }
        return;
    };
    let source = metric.get(field);
    source.must_be_given("must populate information for the given metric source", errors);
    for (_, other) in METRICS {
        if other != *field && metric.get(other).is_given() {
            errors.push(metric.get(other).forbidden("must populate the given metric source only"));
        }
    }
    if source.is_absent() {
        return;
    }
    let goal = source.get("target");
    match *field {
        "resource" | "containerResource" => {
            let name = source.get("name");
            name.must_be_set("must specify a resource name", errors);
            if *field == "containerResource" && source.get("container").is_empty() {
                errors.push(source.get("container").required("must specify a container"));
            }
            resource_goal(&goal, errors);
        }
        _ => {
            let name = source.get("metric.name");
            name.must_be_set("must specify a metric name", errors);
            goal.get("type").one_of(&["AverageValue", "Utilization", "Value"], errors);
            positive(&goal, errors);
            if *field == "pods" && goal.get("averageValue").is_absent() {
                errors.push(goal.get("averageValue").required("must specify a positive target averageValue"));
            }
        }
    }
}

fn positive(goal: &FieldPath<'_, '_>, errors: &mut Errors) {
    for field in ["value", "averageValue"] {
        let field_path = goal.get(field);
        if Quantity::of(field_path.value).is_some_and(|amount| amount.is_negative() || amount.is_zero()) {
            errors.push(field_path.invalid("must be positive"));
        }
    }
}

fn resource_goal(goal: &FieldPath<'_, '_>, errors: &mut Errors) {
    goal.get("type").one_of(&["AverageValue", "Utilization", "Value"], errors);
    positive(goal, errors);
    let (share, average) = (goal.get("averageUtilization"), goal.get("averageValue"));
    share.refuse_number(|share| share < 1, "must be greater than 0", errors);
    match (share.is_given(), average.is_given()) {
        (true, true) => {
            errors.push(average.forbidden("may not set both a target raw value and a target utilization"));
        }
        (false, false) => {
            errors.push(share.required("must set either a target raw value or a target utilization"));
        }
        _ => {}
    }
}

const LONGEST_WINDOW: i64 = 3600;

fn rules(rules: &FieldPath<'_, '_>, errors: &mut Errors) {
    if rules.is_absent() {
        return;
    }
    let window = rules.get("stabilizationWindowSeconds");
    window.refuse_number(|seconds| seconds < 0, "must be greater than or equal to zero", errors);
    if window.number().is_some_and(|seconds| seconds > LONGEST_WINDOW) {
        errors.push(window.invalid(format!("must be less than or equal to {LONGEST_WINDOW}")));
    }
    rules.get("selectPolicy").one_of(&["Disabled", "Max", "Min"], errors);
    let policies = rules.get("policies");
    policies.must_be_set("must specify at least one Policy", errors);
    for policy in policies.items() {
        policy.get("type").one_of(&["Percent", "Pods"], errors);
        let (value, period) = (policy.get("value"), policy.get("periodSeconds"));
        if value.number().unwrap_or(0) <= 0 {
            errors.push(value.refused(value.number().unwrap_or(0), "must be greater than zero"));
        }
        let seconds = period.number().unwrap_or(0);
        if seconds <= 0 {
            errors.push(period.refused(seconds, "must be greater than zero"));
        }
        if seconds > 1800 {
            errors.push(period.invalid("must be less than or equal to 1800"));
        }
    }
}
