//! Create, update and patch. Pure.
//!
//! # Upstream
//! `apiserver/pkg/registry/{rest,generic/registry}` and the strategies of `pkg/registry`

use std::sync::Arc;

use kcm_api::{ObjectKey, Resource};
use serde_json::Value;

use crate::apply;
use crate::defaults;
use crate::event_view;
use crate::json::{self, carry_over};
use crate::kinds::generation;
use crate::kinds::strategy;
use crate::kinds::{Behaviour, EVENTS, Kind, NAMESPACES};
use crate::request::Write;
use crate::request::{Target, Verb};
use crate::server::admission::Attempt;
use crate::server::crds;
use crate::server::keep;
use crate::server::preconditions::{OTHER_NAMESPACE, check_identity, precondition_failed};
use crate::server::{Server, check_kind};
use crate::status::{FieldError, Status};
use crate::validate;

const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";
/// Number of retries for a generated name that exists.
const NAME_ATTEMPTS: usize = 8;

impl Server {
    pub(crate) fn create(&mut self, write: Write<'_>, mut object: Value) -> Result<Arc<Value>, Status> {
        let kind = self.stored_kind(&write.target.resource)?.clone();
        let namespace = write.target.namespace.as_deref();
        check_kind(&kind, &object)?;
        claim_namespace(&kind.resource, namespace, &mut object)?;
        self.check_namespace(&kind.resource, namespace, json::name(&object))?;
        self.check_definition(&kind, json::name(&object))?;
        if !json::version(&object).is_empty() {
            return Err(Status::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        json::prune(&mut object);
        let generated = self.choose_name(&kind.resource, namespace, &mut object)?;
        let key = json::key_of(&kind.resource, namespace, json::name(&object));

        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
            json::set(&mut object, &["metadata", field], None);
        }
        json::set(&mut object, &["metadata", "uid"], Some(self.identities.uid(&kind.resource, &key).into()));
        json::set(&mut object, &["metadata", "creationTimestamp"], Some(write.now.stamp(0).into()));
        generation::begin(&kind, &mut object);
        let given = apply::take_managed_fields(&mut object);
        let owners = self.owners_of_new(write, &kind, given, &object);
        defaults::of_cluster(&self.store, &kind, &mut object)?;
        defaults::initial_state(&kind, &mut object);
        finish(&kind, &mut object);
        let mut errors = validate::object(&kind, &object);
        if kind.is_definition() {
            errors.extend(crds::check(None, &object));
        }
        if event_view::is_view(&write.target.resource) {
            errors.extend(validate::new_event(&object));
        }
        refuse_invalid(&kind, &object, &errors)?;
        self.admit(&Attempt {
            verb: Verb::Create,
            resource: &kind.resource,
            subresource: None,
            key: &key,
            object: Some(&object),
            old: None,
            store: &self.store,
        })?;
        if self.store.get(&kind.resource, &key).is_some() {
            let mut taken = Status::already_exists(&kind.resource, key.name());
            if generated {
                taken.message.push_str(", the server was not able to generate a unique name for the object");
                taken = taken.retry_after(1);
            }
            return Err(taken);
        }
        let mut choices = self.identities.choices(&kind.resource, &key);
        self.allocations.allocate(&self.store, &mut choices, &kind, &mut object)?;
        apply::set_managed_fields(owners, None, &mut object);
        if !write.dry_run {
            let base = json::text(&object, &["metadata", "generateName"]).filter(|_| generated);
            self.identities.created(&kind.resource, &key, base);
        }
        Ok(self.commit(&kind, key, object, write))
    }

    /// Updates an object; returns the HTTP code and the stored object.
    pub(crate) fn update(&mut self, write: Write<'_>, mut new: Value) -> Result<(u16, Arc<Value>), Status> {
        let kind = self.stored_kind(&write.target.resource)?.clone();
        let (resource, target) = (&kind.resource, write.target);
        check_identity(target, &new)?;
        let name = target.name.as_deref().unwrap_or_default();
        let key = json::key_of(resource, target.namespace.as_deref(), name);
        let given = json::uid(&new).to_owned();
        let check_uid = |stored: &str| {
            if given.is_empty() || given == stored {
                return Ok(());
            }
            let path = strategy::storage_key(&kind, &key);
            Err(precondition_failed(resource, name, &path, "UID", &given, stored))
        };
        if target.subresource.is_none() && strategy::put_creates(&kind) && self.store.get(resource, &key).is_none() {
            check_uid("")?;
            json::set(&mut new, &["metadata", "resourceVersion"], None);
            return Ok((201, self.create(write, new)?));
        }
        let make = |old: &Value| {
            check_uid(json::uid(old))?;
            Ok(new)
        };
        let stored = if is_scale(target) { self.change_scale(write, make)? } else { self.change(write, make)? };
        Ok((200, stored))
    }

    pub(crate) fn patch(
        &mut self,
        write: Write<'_>,
        patch: impl FnOnce(&Value) -> Result<Value, Status>,
    ) -> Result<Arc<Value>, Status> {
        if is_scale(write.target) {
            return self.change_scale(write, patch);
        }
        self.change(write, |old| {
            let new = patch(old)?;
            check_identity(write.target, &new)?;
            Ok(new)
        })
    }

    /// Updates the stored object to the result of `make`.
    pub(crate) fn change(
        &mut self,
        write: Write<'_>,
        make: impl FnOnce(&Value) -> Result<Value, Status>,
    ) -> Result<Arc<Value>, Status> {
        let kind = self.stored_kind(&write.target.resource)?.clone();
        let subresource = write.target.subresource.as_deref();
        let namespace = write.target.namespace.as_deref();
        let name = write.target.name.as_deref().unwrap_or_default();
        let key = json::key_of(&kind.resource, namespace, name);
        let Some(old) = self.store.value(&kind.resource, &key) else {
            return Err(Status::not_found(&kind.resource, name));
        };
        let mut new = make(&old)?;
        check_version(&kind, &old, &mut new)?;
        claim_namespace(&kind.resource, namespace, &mut new)?;
        json::prune(&mut new);
        let given = apply::take_managed_fields(&mut new);
        finish(&kind, &mut new);
        let owners = self.owners(write, &kind, &old, given, &new);
        defaults::carry_over(&kind, subresource, &old, &mut new);
        // A scale writes to the spec of its object, so the rules of the main path apply.
        let part = subresource.filter(|subresource| *subresource != "scale");
        keep::unreached(&kind, part, &old, &mut new, write.now);
        if kind.is_definition() {
            crds::record_storage_version(&mut new);
        }
        carry_metadata(&old, &mut new);
        if part.is_some_and(|part| part != "ephemeralcontainers" && part != "resize") {
            carry_over(&old, &mut new, &["metadata", "generation"]);
        } else {
            generation::count(&kind, &old, &mut new);
        }

        let mut errors = validate::object(&kind, &new);
        if kind.is_definition() {
            errors.extend(crds::check(Some(&old), &new));
        }
        errors.extend(validate::change(&kind, subresource, &old, &new));
        if event_view::is_view(&write.target.resource) {
            errors.extend(validate::event_change(&old, &new));
        }
        refuse_invalid(&kind, &new, &errors)?;
        let mut choices = self.identities.choices(&kind.resource, &key);
        self.allocations.allocate(&self.store, &mut choices, &kind, &mut new)?;
        apply::set_managed_fields(owners, Some(&old), &mut new);
        self.admit(&Attempt {
            verb: Verb::Update,
            resource: &kind.resource,
            subresource,
            key: &key,
            object: Some(&new),
            old: Some(&old),
            store: &self.store,
        })?;
        if is_finished(&kind, &old, &new) {
            self.discard(write, &kind, &key, old);
            return Ok(Arc::new(new));
        }
        if new == *old {
            return Ok(old);
        }
        Ok(self.commit(&kind, key, new, write))
    }

    /// Stores an object; a dry run only returns the result.
    pub(crate) fn commit(&mut self, kind: &Kind, key: ObjectKey, object: Value, write: Write<'_>) -> Arc<Value> {
        if write.dry_run {
            return Arc::new(object);
        }
        let stored = self.store.put(&kind.resource, key.clone(), object, write.now.elapsed);
        if kind.resource == EVENTS {
            self.expiry.written(key, write.now.elapsed);
        } else if kind.is_definition() {
            self.define(&key, write.now);
        }
        stored
    }

    /// Performs the follow-ups of a removal.
    pub(crate) fn removed(&mut self, kind: &Kind, key: &ObjectKey, write: Write<'_>) {
        if kind.resource == EVENTS {
            self.expiry.removed(key);
        } else if kind.is_custom() {
            self.finish_definition(&crds::definition_key(kind), write.now);
        }
    }

    /// Generates a name from `generateName`, and reports whether it did.
    fn choose_name(&self, resource: &Resource, namespace: Option<&str>, object: &mut Value) -> Result<bool, Status> {
        if !json::name(object).is_empty() {
            return Ok(false);
        }
        let Some(prefix) = json::text(object, &["metadata", "generateName"]).map(str::to_owned) else {
            let errors = [FieldError::required("metadata.name", "name or generateName is required")];
            return Err(Status::invalid(&resource.group, &resource.kind, "", &errors));
        };
        let is_taken = |name: &String| self.store.get(resource, &json::key_of(resource, namespace, name)).is_some();
        let mut names = self.identities.names(resource, namespace, &prefix);
        let mut name = names.next().unwrap_or_default();
        for next in names.take(NAME_ATTEMPTS - 1) {
            if !is_taken(&name) {
                break;
            }
            name = next;
        }
        json::set(object, &["metadata", "name"], Some(name.into()));
        Ok(true)
    }

    /// Rejects creates in a namespace that does not exist or is terminating.
    ///
    /// # Upstream
    /// `apiserver/pkg/admission/plugin/namespace/lifecycle`
    fn check_namespace(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<(), Status> {
        let Some(namespace) = namespace.filter(|_| resource.namespaced) else { return Ok(()) };
        let Some(found) = self.store.get(&NAMESPACES, &ObjectKey::cluster_scoped(namespace)) else {
            return Err(Status::not_found(&NAMESPACES, namespace));
        };
        if found.text_at(&["status", "phase"]) != "Terminating" {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        Err(Status::forbidden(resource, name, &why).with_cause(
            "NamespaceTerminating",
            format!("namespace {namespace} is being terminated"),
            "metadata.namespace",
        ))
    }
}

fn refuse_invalid(kind: &Kind, object: &Value, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&kind.resource.group, &kind.resource.kind, json::name(object), errors))
}

/// Sets the metadata of a new object.
pub(crate) fn finish(kind: &Kind, object: &mut Value) {
    json::set(object, &["kind"], Some(kind.resource.kind.as_ref().into()));
    json::set(object, &["apiVersion"], Some(kind.resource.api_version().into()));
    defaults::apply(kind, object);
    if kind.is_definition() {
        crds::complete(object);
    }
}

fn is_scale(target: &Target) -> bool {
    target.subresource.as_deref() == Some("scale")
}

fn claim_namespace(resource: &Resource, namespace: Option<&str>, object: &mut Value) -> Result<(), Status> {
    let Some(namespace) = namespace.filter(|_| resource.namespaced) else {
        json::set(object, &["metadata", "namespace"], None);
        return Ok(());
    };
    match json::text(object, &["metadata", "namespace"]) {
        None | Some("") => {
            json::set(object, &["metadata", "namespace"], Some(namespace.into()));
            Ok(())
        }
        Some(given) if given == namespace => Ok(()),
        Some(_) => Err(Status::bad_request(OTHER_NAMESPACE)),
    }
}

/// Checks the optimistic lock and copies the resource version of the old object.
fn check_version(kind: &Kind, old: &Value, new: &mut Value) -> Result<(), Status> {
    let given = json::version(new).to_owned();
    let name = json::name(old);
    if given.is_empty() || given == "0" {
        if strategy::put_needs_version(kind) {
            let errors = [FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update")];
            return Err(Status::invalid(&kind.resource.group, &kind.resource.plural, name, &errors));
        }
        carry_over(old, new, &["metadata", "resourceVersion"]);
    } else if given != json::version(old) {
        if given.parse::<u64>().is_err() {
            return Err(Status::new(500, "", format!("strconv.ParseUint: parsing {given:?}: invalid syntax")));
        }
        return Err(Status::conflict(&kind.resource, name, MODIFIED));
    }
    Ok(())
}

/// Copies the metadata that clients cannot change from the old object.
fn carry_metadata(old: &Value, new: &mut Value) {
    carry_over(old, new, &["metadata", "creationTimestamp"]);
    json::set(new, &["metadata", "selfLink"], None);
    if json::is_terminating(old) {
        carry_over(old, new, &["metadata", "deletionTimestamp"]);
    }
    for field in ["deletionGracePeriodSeconds", "uid"] {
        if json::at(new, &["metadata", field]).is_none_or(|given| given == "") {
            carry_over(old, new, &["metadata", field]);
        }
    }
}

/// Reports whether this write removes the last finalizer of a terminating object.
fn is_finished(kind: &Kind, old: &Value, new: &Value) -> bool {
    let grace = json::at(old, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
    json::is_terminating(old)
        && json::finalizers(new).is_empty()
        && grace.unwrap_or(0) == 0
        && (kind.behaviour != Behaviour::Namespace || json::list(new, &["spec", "finalizers"]).is_empty())
}
