//! Events of `events.k8s.io`, which have stricter rules than events of the core group. The paths in errors are the core
//! group's, as in upstream.
//!
//! # Upstream
//! `pkg/apis/core/validation/events.go`

use serde_json::Value;

use super::field_path::{Errors, FieldPath, IMMUTABLE, immutable};
use crate::status::FieldError;

pub(super) fn new(event: &Value) -> Errors {
    let root = FieldPath::root(event);
    let mut errors = Errors::new();
    series(&root, &mut errors);
    root.get("eventTime").must_be_given("", &mut errors);
    let kind = root.get("type").text();
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", "", format!("has invalid value: {kind}")));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        if !root.get(field).is_empty() {
            errors.push(FieldError::invalid(field, "", "needs to be unset"));
        }
    }
    errors
}

pub(super) fn change(old: &Value, new: &Value) -> Errors {
    let mut errors = Errors::new();
    if old.get("series") != new.get("series") {
        series(&FieldPath::root(new), &mut errors);
    }
    for field in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "action",
        "related",
    ] {
        immutable(old, new, field, &mut errors);
    }
    if old.get("reportingComponent") != new.get("reportingComponent") {
        let value = new.get("reportingComponent").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("reportingController", value, IMMUTABLE));
    }
    immutable(old, new, "reportingInstance", &mut errors);
    errors
}

fn series(root: &FieldPath<'_, '_>, errors: &mut Errors) {
    if root.get("series").is_absent() {
        return;
    }
    if root.get("series.count").number().unwrap_or(0) < 2 {
        errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    root.get("series.lastObservedTime").must_be_given("", errors);
}
