//! Events that come through `events.k8s.io`, of which more is asked than of those of the core group; paths are those
//! of the core group, as upstream has them.
//!
//! # Upstream
//! `pkg/apis/core/validation/events.go`

use serde_json::Value;

use super::field_path::{Errors, IMMUTABLE, Place, immutable};
use crate::status::FieldError;

pub(super) fn new(event: &Value) -> Errors {
    let root = Place::root(event);
    let mut errors = Errors::new();
    series(&root, &mut errors);
    if root.get("eventTime").is_absent() {
        errors.push(root.get("eventTime").required(""));
    }
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
        series(&Place::root(new), &mut errors);
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

fn series(root: &Place<'_, '_>, errors: &mut Errors) {
    if root.get("series").is_absent() {
        return;
    }
    if root.get("series.count").number().unwrap_or(0) < 2 {
        errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if root.get("series.lastObservedTime").is_absent() {
        errors.push(root.get("series.lastObservedTime").required(""));
    }
}
