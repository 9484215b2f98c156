//! A server-side apply request: validation of the configuration, and merge into the live object.

use kcm_api::Resource;
use serde_json::{Value, json};

use super::applied::Application;
use super::check::complaints;
use super::compare::Changes;
use super::managers::{BEFORE_FIRST_APPLY, Manager, Managers, Operation};
use super::reset::reset_fields;
use super::shape::Shape;
use super::{MANAGED_FIELDS, conflict, kubectl, scale};
use crate::json;
use crate::kinds::Kind;
use crate::request::Write;
use crate::status::Status;

/// Validates that the object has the kind of its path, no managed fields, and fits its type.
pub(crate) fn check(group: &str, version: &str, kind: &str, applied: &Value) -> Result<(), Status> {
    let text = |field: &str| json::text(applied, &[field]).unwrap_or_default();
    let own_version = text("apiVersion");
    let (own_group, own_version) = own_version.split_once('/').unwrap_or(("", own_version));
    let own = format!("{own_group}/{own_version}, Kind={}", text("kind"));
    if (own_group, own_version, text("kind")) != (group, version, kind) {
        return Err(Status::bad_request(format!("invalid object type: {own}")));
    }
    if json::at(applied, MANAGED_FIELDS).is_some() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let shape = Shape::of_version(group, version, kind);
    let Some(complaints) = complaints(shape, applied) else { return Ok(()) };
    let (namespace, name) = (json::text(applied, &["metadata", "namespace"]), json::name(applied));
    let namespace = namespace.unwrap_or_default();
    Err(Status::new(500, "", format!("failed to create typed patch object ({namespace}/{name}; {own}): {complaints}")))
}

/// The error for a merged object that does not fit its type.
pub(crate) fn unfit(kind: &Kind, applied: &Value, why: &str) -> Status {
    let Resource { group, version, kind, .. } = &kind.resource;
    let namespace = json::text(applied, &["metadata", "namespace"]).unwrap_or_default();
    let (name, kind) = (json::name(applied), format!("{group}/{version}, Kind={kind}"));
    let message = format!(
        "failed to convert new object ({namespace}/{name}; {kind}) to proper version: unable to convert unstructured object to {kind}: {why}"
    );
    Status::new(500, "", message)
}

/// Returns the live object with the applied configuration and its managed fields.
pub(crate) fn merge(
    write: Write<'_>,
    kind: &Kind,
    old: Option<&Value>,
    applied: &Value,
    force: bool,
) -> Result<Value, Status> {
    let mut live = old.cloned().unwrap_or_else(|| json!({}));
    json::set(&mut live, MANAGED_FIELDS, None);
    let live = &live;
    let mut managers = old.map(managers_of).unwrap_or_default();
    let (shape, version) = (Shape::of_kind(kind), kind.resource.api_version());
    let subresource = write.target.subresource.as_deref();
    let (ignored, now) = (reset_fields(kind, subresource), write.now.stamp(0));
    if managers.is_empty() {
        let all = Changes::between(shape, &json!({}), live, ignored);
        let before = Manager::new(BEFORE_FIRST_APPLY, Operation::Update, &version, subresource);
        managers.update(&all, before, &version, Some(now.clone()));
    }
    let by = Manager::new(write.field_manager.name, Operation::Apply, &version, subresource);
    let mut application = Application { shape, version: &version, ignored, object: applied, by: &by, force };
    let is_kubectl = write.field_manager.name == kubectl::MANAGER;
    let merged = application.to(live, managers.clone()).or_else(|conflicts| {
        let left = if is_kubectl { kubectl::conflicts_left(shape, &version, live, conflicts) } else { conflicts };
        if !left.is_empty() {
            return Err(left);
        }
        application.force = true;
        application.to(live, managers)
    });
    let (object, mut managers) = merged.map_err(|conflicts| conflict::refuse(&conflicts))?;
    if let (Some(_), Some(entry)) = (&object, managers.0.get_mut(&by)) {
        entry.time = Some(now);
    }
    let mut object = object.unwrap_or_else(|| live.clone());
    if is_kubectl {
        kubectl::renew_record(&mut object, applied);
    }
    let owners = (!managers.is_empty()).then(|| managers.into_json());
    json::set(&mut object, MANAGED_FIELDS, owners);
    Ok(object)
}

/// Merges an applied scale into the scale of an object; the object keeps its managed fields.
pub(crate) fn merge_scale(
    write: Write<'_>,
    kind: &Kind,
    old: &Value,
    live: &Value,
    applied: &Value,
    force: bool,
) -> Result<Value, Status> {
    let manager = Manager::new(write.field_manager.name, Operation::Apply, "", Some("scale"));
    let (mut scaled, managers) =
        scale::apply(live, &managers_of(old), &scale::path_of(kind), applied, &manager, force, kind)
            .map_err(|conflicts| conflict::refuse(&conflicts))?;
    json::set(&mut scaled, MANAGED_FIELDS, Some(managers.into_json()));
    Ok(scaled)
}

fn managers_of(object: &Value) -> Managers {
    Managers::from_json(json::list(object, MANAGED_FIELDS)).unwrap_or_default()
}
