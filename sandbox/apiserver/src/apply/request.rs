//! An apply as it comes from a client.

use std::sync::Arc;

use kcm_api::Resource;
use serde_json::{Value, json};

use super::applied::Application;
use super::check::complaints;
use super::compare::Changes;
use super::managers::{BEFORE_FIRST_APPLY, Manager, Managers, Operation};
use super::reset::reset_fields;
use super::shape::Shape;
use super::{Author, MANAGED_FIELDS, conflict, kubectl, scale};
use crate::kinds::Kind;
use crate::object;
use crate::server::{Server, Write};
use crate::service::request::{Query, Verb};
use crate::status::{FieldError, Status};

/// Longer names are refused, and cut where they come from the name of a program.
const LONGEST_MANAGER: usize = 128;

/// The name of the field manager of a write: as the request says, else the name of its program.
///
/// # Errors
/// 422 for a name that is too long or not printable, for an apply without a name, and for force without an apply.
pub(crate) fn manager_of(verb: Verb, query: &Query, applies: bool, user_agent: &str) -> Result<String, Status> {
    let options = match verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        // They have no such parameter.
        Verb::Get | Verb::List | Verb::Watch | Verb::Delete | Verb::DeleteCollection => return Ok(String::new()),
    };
    let given = query.get("fieldManager");
    let mut errors = Vec::new();
    if applies && given.is_none() {
        errors.push(FieldError::required("fieldManager", "is required for apply patch"));
    }
    if verb == Verb::Patch && !applies && query.flag("force").is_some() {
        errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
    }
    let given = given.unwrap_or_default();
    if given.len() > LONGEST_MANAGER {
        errors.push(FieldError::too_long("fieldManager", LONGEST_MANAGER));
    }
    for (at, letter) in given.char_indices().filter(|(_, letter)| !is_printable(*letter)) {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(letter));
        errors.push(FieldError::invalid("fieldManager", given, why));
    }
    if !errors.is_empty() {
        return Err(Status::invalid("meta.k8s.io", options, "", &errors));
    }
    Ok(if given.is_empty() { name_of_program(user_agent) } else { given.to_owned() })
}

/// What stands before the first slash, as far as it is printable and short enough.
fn name_of_program(user_agent: &str) -> String {
    let program = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for letter in program.chars().filter(|letter| is_printable(*letter)) {
        if name.len() + letter.len_utf8() > LONGEST_MANAGER {
            break;
        }
        name.push(letter);
    }
    name
}

fn is_printable(letter: char) -> bool {
    letter == ' ' || !(letter.is_control() || letter.is_whitespace())
}

impl Server {
    /// Applies an object: makes it, or merges it into the one that is there. The answer is a code and the object.
    pub(crate) fn apply(
        &mut self,
        write: Write<'_>,
        applied: &Value,
        force: bool,
        read: impl Fn(Value) -> Result<Value, String>,
    ) -> Result<(u16, Arc<Value>), Status> {
        let kind = self.stored_kind(&write.target.resource)?.clone();
        let subresource = write.target.subresource.as_deref();
        let name = write.target.name.as_deref().unwrap_or_default();
        let key = object::key_of(&kind.resource, write.target.namespace.as_deref(), name);
        let old = self.store.value(&kind.resource, &key);
        let write = Write { author: Author { applied: true, ..write.author }, ..write };
        if subresource == Some("scale") {
            let Some(old) = old else { return Err(Status::not_found(&kind.resource, name)) };
            return Ok((200, self.apply_scale(write, &kind, &old, applied, force)?));
        }
        check(&kind.resource.group, &kind.resource.version, &kind.resource.kind, applied)?;
        let Some(old) = old else {
            return if subresource.is_some() {
                Err(Status::not_found(&kind.resource, name))
            } else {
                Ok((201, self.apply_new(write, &kind, applied, read)?))
            };
        };
        let mut live = Value::clone(&old);
        object::set(&mut live, MANAGED_FIELDS, None);
        let managers = object::list(&old, MANAGED_FIELDS);
        let managers = Managers::from_json(managers).unwrap_or_default();
        let merged = merge(write, &kind, &live, managers, applied, force)?;
        let merged = read(merged).map_err(|why| unfit(&kind, applied, &why))?;
        Ok((200, self.patch(write, |_| Ok(merged))?))
    }

    fn apply_new(
        &mut self,
        write: Write<'_>,
        kind: &Kind,
        applied: &Value,
        read: impl Fn(Value) -> Result<Value, String>,
    ) -> Result<Arc<Value>, Status> {
        let name = write.target.name.as_deref().unwrap_or_default();
        let object = merge(write, kind, &json!({}), Managers::default(), applied, false)?;
        let mut object = read(object).map_err(|why| unfit(kind, applied, &why))?;
        let uid = object::uid(&object);
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Status::conflict(&kind.resource, name, &why));
        }
        match object::name(&object) {
            "" => {
                return Err(Status::bad_request(format!(
                    "the name of the object ({name} based on URL) was undeterminable: name must be provided"
                )));
            }
            given if given != name => {
                return Err(Status::bad_request(format!(
                    "the name of the object ({given}) does not match the name on the URL ({name})"
                )));
            }
            _ => {}
        }
        object::set(&mut object, &["metadata", "resourceVersion"], None);
        self.create(write, object)
    }

    fn apply_scale(
        &mut self,
        write: Write<'_>,
        kind: &Kind,
        old: &Value,
        applied: &Value,
        force: bool,
    ) -> Result<Arc<Value>, Status> {
        check("autoscaling", "v1", "Scale", applied)?;
        let managers = Managers::from_json(object::list(old, MANAGED_FIELDS)).unwrap_or_default();
        let manager = Manager::new(write.author.manager, Operation::Apply, "", Some("scale"));
        let path = scale::path_of(kind);
        self.change_scale(write, |live| {
            let (mut scaled, managers) = scale::apply(live, &managers, &path, applied, &manager, force, kind)
                .map_err(|conflicts| conflict::refuse(&conflicts))?;
            object::set(&mut scaled, MANAGED_FIELDS, Some(managers.into_json()));
            Ok(scaled)
        })
    }
}

/// Whether the object is of the kind of its path, says nothing of owners, and is of its type.
fn check(group: &str, version: &str, kind: &str, applied: &Value) -> Result<(), Status> {
    let text = |field: &str| object::text(applied, &[field]).unwrap_or_default();
    let own_version = text("apiVersion");
    let (own_group, own_version) = own_version.split_once('/').unwrap_or(("", own_version));
    let own = format!("{own_group}/{own_version}, Kind={}", text("kind"));
    if (own_group, own_version, text("kind")) != (group, version, kind) {
        return Err(Status::bad_request(format!("invalid object type: {own}")));
    }
    if object::at(applied, MANAGED_FIELDS).is_some() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let shape = Shape::of_version(group, version, kind);
    let Some(complaints) = complaints(shape, applied) else { return Ok(()) };
    let (namespace, name) = (object::text(applied, &["metadata", "namespace"]), object::name(applied));
    let namespace = namespace.unwrap_or_default();
    Err(Status::new(500, "", format!("failed to create typed patch object ({namespace}/{name}; {own}): {complaints}")))
}

/// The answer to an object that cannot be read as its type once it is merged.
fn unfit(kind: &Kind, applied: &Value, why: &str) -> Status {
    let Resource { group, version, kind, .. } = &kind.resource;
    let namespace = object::text(applied, &["metadata", "namespace"]).unwrap_or_default();
    let (name, kind) = (object::name(applied), format!("{group}/{version}, Kind={kind}"));
    let message = format!(
        "failed to convert new object ({namespace}/{name}; {kind}) to proper version: unable to convert unstructured object to {kind}: {why}"
    );
    Status::new(500, "", message)
}

/// The live object with what is applied, and with its owners.
fn merge(
    write: Write<'_>,
    kind: &Kind,
    live: &Value,
    mut managers: Managers,
    applied: &Value,
    force: bool,
) -> Result<Value, Status> {
    let (shape, version) = (Shape::of_kind(kind), kind.resource.api_version());
    let subresource = write.target.subresource.as_deref();
    let (ignored, now) = (reset_fields(kind, subresource), write.now.stamp(0));
    if managers.is_empty() {
        let all = Changes::between(shape, &json!({}), live, ignored);
        let before = Manager::new(BEFORE_FIRST_APPLY, Operation::Update, &version, subresource);
        managers.update(&all, before, &version, Some(now.clone()));
    }
    let by = Manager::new(write.author.manager, Operation::Apply, &version, subresource);
    let mut application = Application { shape, version: &version, ignored, object: applied, by: &by, force };
    let is_kubectl = write.author.manager == kubectl::MANAGER;
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
    object::set(&mut object, MANAGED_FIELDS, owners);
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(verb: Verb, query: &str, applies: bool, program: &str) -> Result<String, String> {
        manager_of(verb, &Query::parse(query), applies, program).map_err(|status| status.message)
    }

    #[test]
    fn a_manager_is_named_by_the_request_or_by_the_program() {
        let put = |query, program: &str| name(Verb::Update, query, false, program);
        assert_eq!(put("fieldManager=me", "kubectl/v1.36"), Ok("me".to_owned()));
        assert_eq!(put("", "kubectl/v1.36 (linux)"), Ok("kubectl".to_owned()));
        assert_eq!(put("", &format!("{}é/1", "a".repeat(127))), Ok("a".repeat(127)));
        assert_eq!(put("", "a\nb/1"), Ok("ab".to_owned()));
    }

    #[test]
    fn parameters_that_do_not_fit_are_refused_in_upstreams_words() {
        let long = format!("fieldManager={}", "a".repeat(129));
        let cases = [
            ("", true, "fieldManager: Required value: is required for apply patch"),
            ("force=true", false, "force: Forbidden: may not be specified for non-apply patch"),
            (long.as_str(), false, "fieldManager: Too long: may not be more than 128 bytes"),
            (
                "fieldManager=a%0Ab",
                false,
                "fieldManager: Invalid value: \"a\\nb\": invalid character U+000A (at position 1)",
            ),
        ];
        for (query, applies, why) in cases {
            let message = format!("PatchOptions.meta.k8s.io \"\" is invalid: {why}");
            assert_eq!(name(Verb::Patch, query, applies, "curl/8"), Err(message));
        }
    }
}
