//! Controllers of pods, their selectors and strategies.
//!
//! # Upstream
//! `pkg/apis/apps/validation`

use serde_json::Value;

use super::field_path::{Errors, FieldPath};
use super::{go_format, names, pod, selector};
use crate::json::at;
use crate::json::labels_of;
use crate::kinds::Kind;

/// The rules by which kinds of workloads differ.
struct Rules {
    /// The name in messages about the selector.
    named: &'static str,
    /// The name in messages about deadlines.
    forbids_deadline_in: &'static str,
    /// Whether an absent selector is an error of its own.
    requires_selector: bool,
    /// The message about the whole selector if a part of it is invalid.
    wrong_selector: Option<&'static str>,
}

fn rules_of(plural: &str) -> Rules {
    let (named, forbids_deadline_in, requires_selector, wrong_selector) = match plural {
        "statefulsets" => ("statefulset", "StatefulSet", true, Some("")),
        "daemonsets" => ("daemonset", "DaemonSet", false, None),
        // Upstream's messages about replica sets say deployment too.
        _ => ("deployment", "ReplicaSet", true, Some("invalid label selector")),
    };
    Rules { named, forbids_deadline_in, requires_selector, wrong_selector }
}

pub(super) fn object(kind: &Kind, object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let plural = &*kind.resource.plural;
    let rules = rules_of(plural);
    let spec = object.get("spec");
    match plural {
        "replicasets" => {
            spec.none_negative(&["replicas", "minReadySeconds"], errors);
            check_selector(&spec, &rules, errors);
            check_template(&spec, &rules, errors);
        }
        "deployments" => {
            spec.get("replicas").not_negative(errors);
            check_selector(&spec, &rules, errors);
            check_template(&spec, &rules, errors);
            deployment_strategy(&spec.get("strategy"), errors);
            spec.none_negative(&["minReadySeconds", "revisionHistoryLimit"], errors);
            deadline(&spec, errors);
        }
        "statefulsets" => stateful_set(&spec, &rules, errors),
        "daemonsets" => {
            check_selector(&spec, &rules, errors);
            check_template(&spec, &rules, errors);
            spec.get("minReadySeconds").not_negative(errors);
            daemon_strategy(&spec.get("updateStrategy"), errors);
            spec.get("revisionHistoryLimit").not_negative(errors);
        }
        _ => {}
    }
}

fn deadline(spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let deadline = spec.get("progressDeadlineSeconds");
    deadline.not_negative(errors);
    deadline.refuse_number(
        |seconds| seconds <= spec.get("minReadySeconds").number().unwrap_or(0),
        "must be greater than minReadySeconds",
        errors,
    );
}

fn check_selector(spec: &FieldPath<'_, '_>, rules: &Rules, errors: &mut Errors) {
    let field_path = spec.get("selector");
    if field_path.is_absent() {
        if rules.requires_selector {
            errors.push(field_path.required(""));
        }
        refuse_template_labels(spec, errors);
        return;
    }
    let is_right = selector::check(&field_path, errors);
    if field_path.get("matchLabels").is_empty() && field_path.get("matchExpressions").is_empty() {
        let detail = format!("empty selector is invalid for {}", rules.named);
        errors.push(field_path.shown(go_format::json(field_path.value), detail));
        return;
    }
    if !is_right {
        if let Some(detail) = rules.wrong_selector {
            errors.push(field_path.shown(go_format::json(field_path.value), detail));
        }
        return;
    }
    let template = spec.get("template");
    if selector::parse(&field_path).is_some_and(|parsed| !parsed.matches(&labels_of(template.value))) {
        refuse_template_labels(spec, errors);
    }
}

fn refuse_template_labels(spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    errors.push(spec.get("template.metadata.labels").invalid("`selector` does not match template `labels`"));
}

fn check_template(spec: &FieldPath<'_, '_>, rules: &Rules, errors: &mut Errors) {
    let template = spec.get("template");
    pod::template(&template, errors);
    template.get("spec.restartPolicy").one_of(&["Always"], errors);
    let deadline = template.get("spec.activeDeadlineSeconds");
    if deadline.is_given() {
        let detail = format!("activeDeadlineSeconds in {} is not Supported", rules.forbids_deadline_in);
        errors.push(deadline.forbidden(&detail));
    }
}

const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// The hundredths of `25%`.
fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty())?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// A number that is not negative, or a share in percent.
pub(super) fn number_or_percent(field_path: &FieldPath<'_, '_>, errors: &mut Errors) {
    if field_path.value.is_string() && percent(field_path.text()).is_none() {
        errors.push(field_path.invalid(PERCENT));
    }
    field_path.not_negative(errors);
}

pub(super) fn at_most_all(field_path: &FieldPath<'_, '_>, errors: &mut Errors) {
    if percent(field_path.text()).is_some_and(|share| share > 100) {
        errors.push(field_path.invalid("must not be greater than 100%"));
    }
}

/// Returns `true` if a number or percentage is 0; malformed percentages count as 0, as upstream.
fn is_none(field_path: &FieldPath<'_, '_>) -> bool {
    if field_path.value.is_string() {
        percent(field_path.text()).unwrap_or(0) == 0
    } else {
        field_path.number().unwrap_or(0) == 0
    }
}

const STRATEGY: [(&str, &str, &str); 2] = [("Type", "type", "\"\""), ("RollingUpdate", "rollingUpdate", "null")];

fn deployment_strategy(strategy: &FieldPath<'_, '_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" => {
            if rolling.is_given() {
                errors.push(rolling.forbidden("may not be specified when strategy `type` is 'Recreate'"));
            }
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            number_or_percent(&unavailable, errors);
            number_or_percent(&surge, errors);
            if is_none(&unavailable) && is_none(&surge) {
                errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
            }
            at_most_all(&unavailable, errors);
        }
        _ => errors.push(crate::status::FieldError::not_supported_shown(
            strategy.to_string(),
            go_format::go(strategy.value, &STRATEGY),
            &["Recreate", "RollingUpdate"],
        )),
    }
}

fn daemon_strategy(strategy: &FieldPath<'_, '_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            number_or_percent(&unavailable, errors);
            number_or_percent(&surge, errors);
            match (is_none(&unavailable), is_none(&surge)) {
                (true, true) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
                (false, false) => errors.push(surge.invalid("may not be set when maxUnavailable is non-zero")),
                _ => {}
            }
            at_most_all(&unavailable, errors);
            at_most_all(&surge, errors);
        }
        _ => errors.push(crate::status::FieldError::not_supported_shown(
            strategy.to_string(),
            go_format::go(strategy.value, &STRATEGY),
            &["RollingUpdate", "OnDelete"],
        )),
    }
}

fn stateful_set(spec: &FieldPath<'_, '_>, rules: &Rules, errors: &mut Errors) {
    let policy = spec.get("podManagementPolicy");
    match policy.text() {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(policy.required("")),
        _ => errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'")),
    }
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {
            if rolling.is_given() {
                let fields = [("Partition", "partition", "0"), ("MaxUnavailable", "maxUnavailable", "null")];
                let text = go_format::go(rolling.value, &fields);
                errors.push(rolling.shown(text, "only allowed for updateStrategy 'RollingUpdate'"));
            }
        }
        "RollingUpdate" => {
            rolling.get("partition").not_negative(errors);
            number_or_percent(&rolling.get("maxUnavailable"), errors);
        }
        _ => errors
            .push(strategy.shown(go_format::go(strategy.value, &STRATEGY), "must be 'RollingUpdate' or 'OnDelete'")),
    }
    for field in ["whenDeleted", "whenScaled"] {
        spec.get("persistentVolumeClaimRetentionPolicy").get(field).one_of(&["Retain", "Delete"], errors);
    }
    spec.none_negative(&["replicas", "minReadySeconds", "ordinals.start"], errors);
    spec.get("serviceName").may_follow(names::label, errors);
    check_selector(spec, rules, errors);
    check_template(spec, rules, errors);
}

pub(super) fn replication_controller(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let spec = object.get("spec");
    spec.none_negative(&["minReadySeconds", "replicas"], errors);
    spec.get("selector").must_be_set("", errors);
    let template = spec.get("template");
    if template.is_absent() {
        errors.push(template.required(""));
        return;
    }
    let labels = labels_of(template.value);
    let wanted = spec.get("selector");
    let matches = wanted.entries().all(|(key, value)| labels.get(key) == Some(value.text()));
    if !matches {
        refuse_template_labels(&spec, errors);
    }
    pod::template(&template, errors);
    template.get("spec.restartPolicy").one_of(&["Always"], errors);
}

pub(super) fn change(kind: &Kind, subresource: Option<&str>, old: &Value, new: &Value, errors: &mut Errors) {
    match (&*kind.resource.plural, subresource) {
        (plural, Some("status")) => status(plural, old, new, errors),
        ("statefulsets", None) => {
            for field in ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"] {
                super::field_path::immutable(old, new, &format!("spec.{field}"), errors);
            }
        }
        ("replicasets" | "deployments" | "daemonsets", None) => {
            super::field_path::immutable(old, new, "spec.selector", errors);
        }
        _ => {}
    }
}

/// Checks the numbers of a status: none is negative, some do not exceed the number of replicas, and no more replicas are
/// available than ready.
fn status(plural: &str, old: &Value, new: &Value, errors: &mut Errors) {
    let root = FieldPath::root(new);
    let status = root.get("status");
    let (numbers, bounded) = match plural {
        "replicasets" => (
            "replicas fullyLabeledReplicas readyReplicas availableReplicas observedGeneration terminatingReplicas",
            "fullyLabeledReplicas readyReplicas availableReplicas",
        ),
        "deployments" => (
            "observedGeneration replicas updatedReplicas readyReplicas availableReplicas unavailableReplicas \
             terminatingReplicas collisionCount",
            "updatedReplicas readyReplicas availableReplicas",
        ),
        "statefulsets" => (
            "replicas readyReplicas currentReplicas updatedReplicas availableReplicas observedGeneration collisionCount",
            "readyReplicas currentReplicas updatedReplicas availableReplicas",
        ),
        "daemonsets" => (
            "currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady observedGeneration \
             updatedNumberScheduled numberAvailable numberUnavailable collisionCount",
            "",
        ),
        _ => return,
    };
    for field in numbers.split(' ') {
        status.get(field).not_negative(errors);
    }
    let count = |field: &str| status.get(field).number().unwrap_or(0);
    for field in bounded.split_ascii_whitespace() {
        if count(field) > count("replicas") {
            errors.push(status.get(field).refused(count(field), "cannot be greater than status.replicas"));
        }
    }
    if !bounded.is_empty() && count("availableReplicas") > count("readyReplicas") {
        let available = status.get("availableReplicas");
        let bound = if plural == "statefulsets" { "status.readyReplicas" } else { "readyReplicas" };
        errors.push(available.refused(count("availableReplicas"), format!("cannot be greater than {bound}")));
    }
    let collisions = |object: &Value| at(object, &["status", "collisionCount"]).and_then(Value::as_i64);
    if let Some(before) = collisions(old)
        && collisions(new).is_none_or(|after| after < before)
    {
        let field_path = status.get("collisionCount");
        errors.push(field_path.refused(collisions(new).unwrap_or(0), "cannot be decremented"));
    }
}

pub(super) fn revision(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    object.get("data").must_be_given("data is mandatory", errors);
    object.get("revision").not_negative(errors);
}
