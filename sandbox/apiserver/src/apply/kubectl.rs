//! Migration from client-side apply of kubectl: its last-applied annotation counts as ownership, and is kept up to
//! date. Pure.
//!
//! # Upstream
//! `lastapplied{manager,updater}.go` of `apimachinery/pkg/util/managedfields/internal`

use serde_json::Value;

use super::applied::Conflicts;
use super::collect::fields_of;
use super::compare::Changes;
use super::fieldset::FieldSet;
use super::shape::Shape;
use crate::json;

/// The field manager of `kubectl apply --server-side`.
pub(crate) const MANAGER: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const PATH: [&str; 3] = ["metadata", "annotations", LAST_APPLIED];

/// Returns the conflicts that remain if kubectl owns the fields that it applied last and that are unchanged since.
pub(crate) fn conflicts_left(shape: Shape, version: &str, live: &Value, conflicts: Conflicts) -> Conflicts {
    let Some(own) = own_fields(shape, version, live) else { return conflicts };
    let left = conflicts.into_iter().map(|(manager, mut fields)| {
        fields.subtract(&own);
        (manager, fields)
    });
    left.filter(|(_, fields)| !fields.is_empty()).collect()
}

fn own_fields(shape: Shape, version: &str, live: &Value) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(json::text(live, &PATH)?).ok()?;
    if json::text(&last, &["apiVersion"]) != Some(version) {
        return None;
    }
    let changes = Changes::between(shape, &last, live, &FieldSet::default());
    let mut own = fields_of(shape, &last);
    own.subtract(&changes.set);
    own.subtract(&changes.removed);
    Some(own)
}

/// Updates the last-applied annotation, if there is one.
pub(crate) fn renew_record(object: &mut Value, applied: &Value) {
    if json::text(object, &PATH).is_none_or(str::is_empty) {
        return;
    }
    let mut record = applied.clone();
    json::set(&mut record, &PATH, None);
    if json::at(&record, &PATH[..2]).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
        json::set(&mut record, &PATH[..2], None);
    }
    json::set(object, &PATH, Some(format!("{record}\n").into()));
}
