//! Jobs.
//!
//! # Upstream
//! `pkg/apis/batch/validation`

use serde_json::{Value, json};

use super::field_path::{Errors, FieldPath, immutable};
use super::{go_format, pod, schedule, selector};
use crate::json::{at, set};
use crate::status::FieldError;

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

pub(super) fn job(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let uid = object.get("metadata.uid").text();
    generated_selector(object, &spec, uid, errors);
    let field_path = spec.get("selector");
    if field_path.is_absent() {
        errors.push(field_path.required(""));
    } else {
        selector::check(&field_path, errors);
    }
    if selector::parse(&field_path)
        .is_none_or(|parsed| !parsed.matches(&crate::json::labels_of(spec.get("template").value)))
    {
        errors.push(spec.get("template.metadata.labels").invalid("`selector` does not match template `labels`"));
    }
    common(&spec, errors);
}

/// Checks that labels and selector are the generated ones.
fn generated_selector(object: &FieldPath<'_, '_>, spec: &FieldPath<'_, '_>, uid: &str, errors: &mut Errors) {
    if spec.get("manualSelector").is_true() {
        return;
    }
    let expected = json!({ "matchLabels": { (CONTROLLER_UID): uid } });
    let field_path = spec.get("selector");
    let labels = spec.get("template.metadata.labels");
    for (key, value) in [(CONTROLLER_UID, uid), ("batch.kubernetes.io/job-name", object.get("metadata.name").text())] {
        if labels.value.get(key).and_then(Value::as_str) != Some(value) {
            errors.push(labels.invalid(format!("must be '{value}'")));
        }
    }
    if *field_path.value != expected {
        errors.push(field_path.shown(go_format::json(field_path.value), "`selector` not auto-generated"));
    }
}

const FAILURE_ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

fn common(spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    spec.none_negative(
        &["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"],
        errors,
    );
    let limit = spec.get("backoffLimitPerIndex");
    limit.not_negative(errors);
    let mode = spec.get("completionMode");
    mode.one_of(&["NonIndexed", "Indexed"], errors);
    let is_indexed = mode.text() == "Indexed";
    if is_indexed && spec.get("completions").is_absent() {
        errors.push(spec.get("completions").required("when completion mode is Indexed"));
    }
    if !is_indexed && limit.is_given() {
        errors.push(limit.invalid("requires indexed completion mode"));
    }
    let failures = spec.get("podFailurePolicy");
    for rule in failures.get("rules").items() {
        failure_rule(&rule, errors);
    }
    let replacement = spec.get("podReplacementPolicy");
    if failures.is_given() {
        replacement.one_of(&["Failed"], errors);
    } else {
        replacement.one_of(&["Failed", "TerminatingOrFailed"], errors);
    }
    pod::template(&spec.get("template"), errors);
    // The policy of a template is checked whether or not it is there.
    let policy = spec.get("template.spec.restartPolicy");
    match policy.text() {
        "Always" | "" => errors.push(policy.required("valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if failures.is_given() => {
            errors.push(policy.invalid("only \"Never\" is supported when podFailurePolicy is specified"));
        }
        "Never" | "OnFailure" => {}
        _ => errors.push(policy.unsupported(&["OnFailure", "Never"])),
    }
}

fn failure_rule(rule: &FieldPath<'_, '_>, errors: &mut Errors) {
    let action = rule.get("action");
    if action.is_empty() {
        errors.push(action.required(&format!("valid values: {FAILURE_ACTIONS:?}")));
    } else {
        action.one_of(&FAILURE_ACTIONS, errors);
    }
    let codes = rule.get("onExitCodes");
    let conditions = rule.get("onPodConditions");
    if codes.is_given() {
        codes.get("operator").one_of(&["In", "NotIn"], errors);
        let values = codes.get("values");
        if values.is_empty() {
            errors.push(values.refused(json!([]), "at least one value is required"));
        }
        for value in values.items() {
            if codes.get("operator").text() == "In" && value.number() == Some(0) {
                errors.push(value.invalid("must not be 0 for the In operator"));
            }
        }
    }
    for condition in conditions.items() {
        condition.get("status").one_of(&["False", "True", "Unknown"], errors);
    }
    match (codes.is_given(), conditions.is_empty()) {
        (true, false) => {
            errors.push(FieldError::invalid_without_value(
                rule.to_string(),
                "specifying both OnExitCodes and OnPodConditions is not supported",
            ));
        }
        (false, true) => errors.push(FieldError::invalid_without_value(
            rule.to_string(),
            "specifying one of OnExitCodes and OnPodConditions is required",
        )),
        _ => {}
    }
}

pub(super) fn cron_job(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let name = object.get("metadata.name");
    if name.text().len() > 52 {
        errors.push(name.invalid("must be no more than 52 characters"));
    }
    let spec = object.get("spec");
    let times = spec.get("schedule");
    if times.is_empty() {
        errors.push(times.required(""));
    } else if times.text().contains("TZ") {
        errors.push(times.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
    } else if let Err(problem) = schedule::check(times.text()) {
        errors.push(times.invalid(problem));
    }
    spec.get("startingDeadlineSeconds").not_negative(errors);
    spec.get("concurrencyPolicy").one_of(&["Allow", "Forbid", "Replace"], errors);
    time_zone(&spec.get("timeZone"), errors);
    spec.get("successfulJobsHistoryLimit").not_negative(errors);
    spec.get("failedJobsHistoryLimit").not_negative(errors);
    let template = spec.get("jobTemplate");
    let inner = template.get("spec");
    common(&inner, errors);
    let selector = inner.get("selector");
    if selector.is_given() {
        errors.push(selector.shown(go_format::json(selector.value), "`selector` will be auto-generated"));
    }
    let manual = inner.get("manualSelector");
    if manual.is_true() {
        errors.push(manual.unsupported(&["nil", "false"]));
    }
}

fn time_zone(zone: &FieldPath<'_, '_>, errors: &mut Errors) {
    if zone.is_absent() {
        return;
    }
    if zone.is_empty() {
        errors.push(zone.invalid("timeZone must be nil or non-empty string"));
        return;
    }
    if zone.text().eq_ignore_ascii_case("local") {
        errors
            .push(zone.invalid("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"));
    }
    if !schedule::is_time_zone(zone.text()) {
        errors.push(zone.invalid(format!("unknown time zone {}", zone.text())));
    }
}

pub(super) fn change(old: &Value, new: &Value, errors: &mut Errors) {
    let root = FieldPath::root(new);
    let spec = root.get("spec");
    completions(old, &spec, errors);
    immutable(old, new, "spec.selector", errors);
    let suspended = at(old, &["spec", "suspend"]) == Some(&Value::Bool(true));
    let fixed = |job: &Value| {
        let mut template = at(job, &["spec", "template"]).cloned().unwrap_or_default();
        if suspended {
            // A queue may direct the pods of a job until it starts.
            for field in ["nodeSelector", "tolerations", "schedulingGates", "affinity"] {
                set(&mut template, &["spec", field], None);
            }
            for field in ["labels", "annotations"] {
                set(&mut template, &["metadata", field], None);
            }
        }
        template
    };
    if fixed(old) != fixed(new) {
        // Upstream shows its internal type here.
        let template = spec.get("template");
        errors.push(template.invalid(super::field_path::IMMUTABLE));
    }
    for field in [
        "spec.completionMode",
        "spec.podFailurePolicy",
        "spec.backoffLimitPerIndex",
        "spec.managedBy",
        "spec.successPolicy",
    ] {
        immutable(old, new, field, errors);
    }
}

/// Indexed jobs scale by completions and parallelism at once.
fn completions(old: &Value, spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let after = spec.get("completions");
    if at(old, &["spec", "completions"]) == Some(after.value)
        || (after.is_absent() && at(old, &["spec", "completions"]).is_none())
    {
        return;
    }
    let is_indexed = spec.get("completionMode").text() == "Indexed";
    if !is_indexed {
        errors.push(after.invalid(super::field_path::IMMUTABLE));
    } else if after.value != spec.get("parallelism").value {
        let detail = format!("can only be modified in tandem with {}", spec.get("parallelism"));
        errors.push(after.invalid(detail));
    }
}
