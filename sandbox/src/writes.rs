//! Create, put, patch and bind. Pure.
//!
//! # Upstream
//! `apiserver/pkg/registry/{rest,generic/registry}` and the strategies of `pkg/registry`

use std::sync::Arc;

use kcm_api::{ObjectKey, Resource};
use serde_json::{Value, json};

use crate::admission::Attempt;
use crate::kinds::{Behaviour, Kind, NAMESPACES};
use crate::object::{self, carry_over};
use crate::request::Verb;
use crate::server::{Server, Write, check_kind};
use crate::status::{FieldError, Status};
use crate::{defaults, validate};

const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";
/// How often a generated name is tried again when it is taken.
const NAME_ATTEMPTS: u32 = 8;

impl Server {
    pub(crate) fn create(&mut self, write: Write<'_>, mut object: Value) -> Result<Arc<Value>, Status> {
        let kind = self.kind(&write.target.resource)?.clone();
        let namespace = write.target.namespace.as_deref();
        check_kind(&kind, &object)?;
        claim_namespace(&kind.resource, namespace, &mut object)?;
        self.check_namespace(&kind.resource, namespace, object::name(&object))?;
        if !object::version(&object).is_empty() {
            return Err(Status::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        object::prune(&mut object);
        let generated = self.choose_name(&kind.resource, namespace, &mut object)?;
        let key = object::key_of(&kind.resource, namespace, object::name(&object));

        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
            object::set(&mut object, &["metadata", field], None);
        }
        object::set(&mut object, &["metadata", "uid"], Some(self.random.uid().into()));
        object::set(&mut object, &["metadata", "creationTimestamp"], Some(write.now.stamp(0).into()));
        object::set(&mut object, &["metadata", "generation"], kind.generation.then(|| 1.into()));
        defaults::initial_state(kind.behaviour, kind.status, &mut object);
        finish(&kind, &mut object);
        refuse_invalid(&kind, &object, &validate::object(&kind, &object))?;
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
        Ok(self.commit(&kind.resource, key, object, write))
    }

    pub(crate) fn update(&mut self, write: Write<'_>, new: Value) -> Result<Arc<Value>, Status> {
        let name = write.target.name.as_deref().unwrap_or_default();
        let given = object::name(&new);
        if given.is_empty() {
            return Err(Status::bad_request("name must be provided"));
        }
        if given != name {
            return Err(Status::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        let resource = &write.target.resource;
        self.change(write, |old| {
            let (given, stored) = (object::uid(&new), object::uid(old));
            if given.is_empty() || given == stored {
                return Ok(new);
            }
            let key = object::key_of(resource, write.target.namespace.as_deref(), name);
            Err(Status::conflict(
                resource,
                name,
                &format!(
                    "StorageError: invalid object, Code: 4, Key: /{}/{key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, UID in object meta: {stored}",
                    resource.plural
                ),
            ))
        })
    }

    pub(crate) fn patch(
        &mut self,
        write: Write<'_>,
        patch: impl FnOnce(&Value) -> Result<Value, Status>,
    ) -> Result<Arc<Value>, Status> {
        self.change(write, patch)
    }

    /// Replaces the stored object by what `make` makes of it.
    fn change(
        &mut self,
        write: Write<'_>,
        make: impl FnOnce(&Value) -> Result<Value, Status>,
    ) -> Result<Arc<Value>, Status> {
        let kind = self.kind(&write.target.resource)?.clone();
        let subresource = write.target.subresource.as_deref();
        let namespace = write.target.namespace.as_deref();
        let name = write.target.name.as_deref().unwrap_or_default();
        let key = object::key_of(&kind.resource, namespace, name);
        let Some(old) = self.store.get(&kind.resource, &key).cloned() else {
            return Err(Status::not_found(&kind.resource, name));
        };
        let mut new = make(&old)?;
        check_version(&kind, &old, &mut new)?;
        claim_namespace(&kind.resource, namespace, &mut new)?;
        object::prune(&mut new);
        finish(&kind, &mut new);
        keep_unwritable(&kind, subresource, &old, &mut new);

        let mut errors = validate::object(&kind, &new);
        errors.extend(validate::change(&kind, subresource, &old, &new));
        refuse_invalid(&kind, &new, &errors)?;
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
            if !write.dry_run {
                self.store.remove(&kind.resource, &key, write.now.elapsed);
            }
            return Ok(Arc::new(new));
        }
        if new == *old {
            return Ok(old);
        }
        Ok(self.commit(&kind.resource, key, new, write))
    }

    /// Binds a pod to a node.
    pub(crate) fn bind(&mut self, write: Write<'_>, binding: &Value) -> Result<Arc<Value>, Status> {
        let resource = &write.target.resource;
        let name = write.target.name.as_deref().unwrap_or_default();
        let key = object::key_of(resource, write.target.namespace.as_deref(), name);
        if object::name(binding) != name {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        let Some(old) = self.store.get(resource, &key) else {
            return Err(Status::not_found(resource, name));
        };
        let mut binding_of = resource.clone();
        binding_of.plural = format!("{}/binding", resource.plural).into();
        let conflict = |why: String| Status::conflict(&binding_of, name, &why);
        if object::is_terminating(old) {
            return Err(conflict(format!("pod {name} is being deleted, cannot be assigned to a host")));
        }
        if let Some(node) = object::text(old, &["spec", "nodeName"]).filter(|node| !node.is_empty()) {
            return Err(conflict(format!("pod {name} is already assigned to node {node:?}")));
        }
        let Some(node) = object::text(binding, &["target", "name"]).filter(|node| !node.is_empty()) else {
            let errors = [FieldError::required("target.name", "")];
            return Err(Status::invalid("", "Binding", name, &errors));
        };
        let mut pod = Value::clone(old);
        object::set(&mut pod, &["spec", "nodeName"], Some(node.into()));
        let scheduled = json!({
            "type": "PodScheduled", "status": "True",
            "lastProbeTime": null, "lastTransitionTime": write.now.stamp(0),
        });
        let mut conditions = object::list(&pod, &["status", "conditions"]).to_vec();
        conditions.retain(|condition| object::text(condition, &["type"]) != Some("PodScheduled"));
        conditions.push(scheduled);
        object::set(&mut pod, &["status", "conditions"], Some(conditions.into()));
        self.commit(resource, key, pod, write);
        Ok(Arc::new(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        })))
    }

    /// Stores an object, or only says how it would be stored.
    pub(crate) fn commit(
        &mut self,
        resource: &Resource,
        key: ObjectKey,
        object: Value,
        write: Write<'_>,
    ) -> Arc<Value> {
        if write.dry_run { Arc::new(object) } else { self.store.put(resource, key, object, write.now.elapsed) }
    }

    /// Generates a name where one is wanted; says whether it did.
    fn choose_name(
        &mut self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &mut Value,
    ) -> Result<bool, Status> {
        if !object::name(object).is_empty() {
            return Ok(false);
        }
        let Some(prefix) = object::text(object, &["metadata", "generateName"]).map(str::to_owned) else {
            let errors = [FieldError::required("metadata.name", "name or generateName is required")];
            return Err(Status::invalid(&resource.group, &resource.kind, "", &errors));
        };
        let mut name = self.random.name(&prefix);
        for _ in 1..NAME_ATTEMPTS {
            if self.store.get(resource, &object::key_of(resource, namespace, &name)).is_none() {
                break;
            }
            name = self.random.name(&prefix);
        }
        object::set(object, &["metadata", "name"], Some(name.into()));
        Ok(true)
    }

    /// Nothing is made where there is no namespace, or one that goes away.
    ///
    /// # Upstream
    /// `apiserver/pkg/admission/plugin/namespace/lifecycle`
    fn check_namespace(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<(), Status> {
        let Some(namespace) = namespace.filter(|_| resource.namespaced) else { return Ok(()) };
        let Some(found) = self.store.get(&NAMESPACES, &ObjectKey::cluster_scoped(namespace)) else {
            return Err(Status::not_found(&NAMESPACES, namespace));
        };
        if object::text(found, &["status", "phase"]) != Some("Terminating") {
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
    Err(Status::invalid(&kind.resource.group, &kind.resource.kind, object::name(object), errors))
}

/// Writes what every stored object carries.
fn finish(kind: &Kind, object: &mut Value) {
    object::set(object, &["kind"], Some(kind.resource.kind.as_ref().into()));
    object::set(object, &["apiVersion"], Some(kind.resource.api_version().into()));
    defaults::apply(kind.behaviour, object);
}

fn claim_namespace(resource: &Resource, namespace: Option<&str>, object: &mut Value) -> Result<(), Status> {
    let Some(namespace) = namespace.filter(|_| resource.namespaced) else {
        object::set(object, &["metadata", "namespace"], None);
        return Ok(());
    };
    match object::text(object, &["metadata", "namespace"]) {
        None | Some("") => {
            object::set(object, &["metadata", "namespace"], Some(namespace.into()));
            Ok(())
        }
        Some(given) if given == namespace => Ok(()),
        Some(_) => Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// The optimistic lock; afterwards the new object carries the version of the old one.
fn check_version(kind: &Kind, old: &Value, new: &mut Value) -> Result<(), Status> {
    let given = object::version(new);
    let name = object::name(old);
    if given.is_empty() || given == "0" {
        if kind.is_custom() {
            let errors = [FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update")];
            return Err(Status::invalid(&kind.resource.group, &kind.resource.plural, name, &errors));
        }
        carry_over(old, new, &["metadata", "resourceVersion"]);
    } else if given != object::version(old) {
        return Err(Status::conflict(&kind.resource, name, MODIFIED));
    }
    Ok(())
}

/// Takes from the old object what this kind of write does not reach, and counts the generation.
fn keep_unwritable(kind: &Kind, subresource: Option<&str>, old: &Value, new: &mut Value) {
    let kept: &[&[&str]] = match (kind.behaviour, subresource) {
        (Behaviour::Custom, Some(_)) => {
            let status = new.get("status").cloned();
            let version = new["metadata"]["resourceVersion"].clone();
            *new = old.clone();
            object::set(new, &["status"], status);
            new["metadata"]["resourceVersion"] = version;
            &[]
        }
        (Behaviour::Namespace, None) => &[&["status"], &["spec", "finalizers"]],
        (Behaviour::Namespace, Some("finalize")) => &[&["status"]],
        (Behaviour::Pod, Some(_)) => &[&["spec"], &["metadata", "ownerReferences"], &["status", "qosClass"]],
        (Behaviour::Deployment, Some(_)) => &[&["spec"], &["metadata", "labels"]],
        (_, Some(_)) => &[&["spec"]],
        (_, None) if kind.status => &[&["status"]],
        (_, None) => &[],
    };
    for path in kept {
        carry_over(old, new, path);
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
        carry_over(old, new, &["metadata", field]);
    }
    if object::uid(new).is_empty() {
        carry_over(old, new, &["metadata", "uid"]);
    }
    if kind.generation && subresource.is_none() && desired_state_differs(kind, old, new) {
        let generation = object::at(old, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
        object::set(new, &["metadata", "generation"], Some((generation + 1).into()));
    }
}

fn desired_state_differs(kind: &Kind, old: &Value, new: &Value) -> bool {
    match kind.behaviour {
        // Annotations are copied to the replica sets, so they count.
        Behaviour::Deployment => {
            old.get("spec") != new.get("spec")
                || object::at(old, &["metadata", "annotations"]) != object::at(new, &["metadata", "annotations"])
        }
        Behaviour::Custom => {
            let desired = |object: &Value| {
                let mut object = object.clone();
                object::set(&mut object, &["metadata"], None);
                object::set(&mut object, &["status"], None);
                object
            };
            desired(old) != desired(new)
        }
        Behaviour::Pod | Behaviour::ReplicaSet | Behaviour::Namespace | Behaviour::Plain => {
            old.get("spec") != new.get("spec")
        }
    }
}

/// Whether this write takes the last finalizer from an object that waited for it.
fn is_finished(kind: &Kind, old: &Value, new: &Value) -> bool {
    let grace = object::at(old, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
    object::is_terminating(old)
        && object::finalizers(new).is_empty()
        && grace.unwrap_or(0) == 0
        && (kind.behaviour != Behaviour::Namespace || object::list(new, &["spec", "finalizers"]).is_empty())
}
