//! Field ownership (`metadata.managedFields`) and server-side apply.
//!
//! ```text
//! update, patch ─▶ compare old and new ─▶ changed fields go to the writer ─┐
//!                                                                          ├─▶ managers ─▶ metadata.managedFields
//! apply ─▶ check ─▶ merge into live ─▶ prune ─▶ conflicts? ─▶ its fields ──┘
//! ```
//!
//! Objects are walked by their [`shape::Shape`], which comes from the schema; sets of fields are trees
//! ([`fieldset::FieldSet`]) over path elements in the form in which they are serialized ([`element`]).
//!
//! # Guarantees
//! - A write that changes no field changes no ownership; a write that changes only times is a no-op.
//! - Only fields that differ are walked below the first level in which they differ.
//!
//! # Upstream
//! `structured-merge-diff`, `apimachinery/pkg/util/managedfields`, `apiserver/pkg/endpoints/handlers/patch.go`

mod applied;
mod check;
mod collect;
mod compare;
mod conflict;
mod element;
mod fieldset;
mod kubectl;
mod managers;
mod merge;
mod request;
mod reset;
mod scale;
mod shape;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

pub(crate) use self::request::{check, merge, merge_scale, unfit};

use self::compare::Changes;
use self::managers::{Manager, Managers, Operation};
use self::reset::reset_fields;
use self::shape::Shape;
use crate::json;
use crate::kinds::Kind;
use crate::request::Write;

const MANAGED_FIELDS: &[&str] = &["metadata", "managedFields"];

/// Computes the managed fields after a write other than apply.
pub(crate) fn owners_after(
    write: Write<'_>,
    kind: &Kind,
    old: Option<&Value>,
    given: Option<&Value>,
    new: &Value,
) -> Option<Value> {
    let subresource = write.target.subresource.as_deref();
    let nothing = json!({});
    let ignored = reset_fields(kind, subresource);
    let changes = Changes::between(Shape::of_kind(kind), old.unwrap_or(&nothing), new, ignored);
    let stored = old.and_then(|old| json::at(old, MANAGED_FIELDS));
    if changes.is_empty() && (given.is_none() || given == stored) {
        return stored.cloned();
    }
    let mut managers = managers_before(stored, given, subresource);
    // An object without managed fields gets none before the first apply.
    if old.is_none() || !managers.is_empty() {
        let version = kind.resource.api_version();
        let by = Manager::new(write.field_manager.name, Operation::Update, &version, subresource);
        // Upstream loses the time on the way from the scale to its object.
        let now = (subresource != Some("scale")).then(|| write.now.stamp(0));
        managers.update(&changes, by, &version, now);
    }
    (!managers.is_empty()).then(|| managers.into_json())
}

/// Sets the managed fields of an object. Keeps the fields of `old` if only their times differ.
///
/// # Upstream
/// `apiserver/pkg/endpoints/handlers/fieldmanager/equality.go`
pub(crate) fn set_managed_fields(owners: Option<Value>, old: Option<&Value>, new: &mut Value) {
    json::set(new, MANAGED_FIELDS, owners);
    if let Some(old) = old.filter(|old| differ_in_times_only(old, new)) {
        json::carry_over(old, new, MANAGED_FIELDS);
    }
}

fn differ_in_times_only(old: &Value, new: &Value) -> bool {
    let (old_owners, new_owners) = (json::list(old, MANAGED_FIELDS), json::list(new, MANAGED_FIELDS));
    old_owners != new_owners
        && old_owners.len() == new_owners.len()
        && old_owners.iter().zip(new_owners).all(|(old, new)| equal_but_for("time", old, new))
        && equal_but_for("managedFields", &old["metadata"], &new["metadata"])
        && equal_but_for("metadata", old, new)
}

/// Reports whether two maps are equal without a field.
fn equal_but_for(field: &str, a: &Value, b: &Value) -> bool {
    match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => {
            a.iter().filter(|(name, _)| *name != field).eq(b.iter().filter(|(name, _)| *name != field))
        }
        _ => a == b,
    }
}

/// Removes the managed fields of a request from its object.
pub(crate) fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields").filter(|given| !given.is_null())
}

/// Returns the managers before a write: the request's managers if they are valid, otherwise the stored managers.
fn managers_before(stored: Option<&Value>, given: Option<&Value>, subresource: Option<&str>) -> Managers {
    let read = |entries: &Value| Managers::from_json(entries.as_array()?);
    let stored = || stored.and_then(read).unwrap_or_default();
    match given {
        None => stored(),
        // Subresource writes cannot change ownership explicitly.
        Some(_) if subresource.is_some() => stored(),
        Some(given) if is_reset(given) => Managers::default(),
        Some(given) => read(given).filter(|managers| !managers.is_empty()).unwrap_or_else(stored),
    }
}

/// Reports whether a request resets all managed fields: an empty list, or one empty entry.
fn is_reset(given: &Value) -> bool {
    match given.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => one.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    }
}
