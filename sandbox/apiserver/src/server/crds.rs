//! Custom resource definitions: their validation, lifecycle and served kinds. Pure.
//!
//! ```text
//! created ──▶ names accepted, established ──▶ served ──▶ deleted ──▶ objects deleted ──▶ gone, with its kind
//! ```
//!
//! Only the storage version is served; the schema is stored and not enforced.
//!
//! # Upstream
//! `apiextensions-apiserver`: its registry, and the controllers that accept names, establish and finalize

use std::borrow::Cow;
use std::sync::Arc;

use kcm_api::{ObjectKey, Resource};
use serde_json::{Value, json};

use crate::json::{self, at, list, text};
use crate::kinds::ScalePaths;
use crate::kinds::{Behaviour, CUSTOM_RESOURCE_DEFINITIONS, Kind, Subresource};
use crate::request::{Now, Write};
use crate::request::{Target, Verb};
use crate::server::Server;
use crate::server::delete::{DeleteOptions, Deleted};
use crate::status::{FieldError, Status};
use crate::store::stored::Stored;

const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Sets the defaults of a definition, and records its storage version.
pub(crate) fn complete(definition: &mut Value) {
    if let Some(kind) = text(definition, &["spec", "names", "kind"]).filter(|kind| !kind.is_empty()).map(str::to_owned)
    {
        json::set_default(definition, &["spec", "names", "singular"], kind.to_lowercase());
        json::set_default(definition, &["spec", "names", "listKind"], format!("{kind}List"));
    }
    json::set_default(definition, &["spec", "conversion", "strategy"], "None");
    json::set_default(definition, &["status", "conditions"], Value::Null);
    json::set_default(definition, &["status", "acceptedNames"], json!({ "plural": "", "kind": "" }));
    record_storage_version(definition);
}

/// Adds the storage version to the stored versions.
pub(crate) fn record_storage_version(definition: &mut Value) {
    let mut stored = list(definition, &["status", "storedVersions"]).to_vec();
    let name = storage_version(definition).and_then(|version| version.get("name"));
    if let Some(name) = name.filter(|name| !stored.contains(name)) {
        stored.push(name.clone());
    }
    json::set(definition, &["status", "storedVersions"], Some(stored.into()));
}

pub(crate) fn check(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = |path: &[&str]| text(new, path).unwrap_or_default().to_owned();
    let (plural, group) = (field(&["spec", "names", "plural"]), field(&["spec", "group"]));
    if json::name(new) != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", json::name(new), detail));
    }
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid("spec.group", group.as_str(), "should be a domain with at least one dot"));
    }
    if is_protected(&group) {
        let (before, after) = (old.map(approval), approval(new));
        if before != Some(after) {
            errors.extend(after.refused());
        }
    }
    match field(&["spec", "scope"]).as_str() {
        "Cluster" | "Namespaced" => {}
        "" => errors.push(FieldError::required("spec.scope", "")),
        other => errors.push(FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    let versions = list(new, &["spec", "versions"]);
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", versions.to_vec(), detail));
    }
    for name in ["plural", "singular", "kind", "listKind"] {
        if field(&["spec", "names", name]).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{name}"), ""));
        }
    }
    for path in [&["spec", "group"][..], &["spec", "scope"], &["spec", "names", "plural"], &["spec", "names", "kind"]] {
        if old.is_some_and(|old| at(old, path) != at(new, path)) {
            errors.push(FieldError::invalid(path.join("."), field(path), "field is immutable"));
        }
    }
    errors
}

/// Reports whether a group is protected: its kinds need API approval.
///
/// # Upstream
/// `IsProtectedCommunityGroup`
fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.')))
}

const APPROVED: &str = "api-approved.kubernetes.io";

/// The state of the `api-approved.kubernetes.io` annotation.
///
/// # Upstream
/// `GetAPIApprovalState`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Approval<'a> {
    Missing,
    /// Neither a URL nor `unapproved`.
    Invalid(&'a str),
    /// The definition says that it is not approved.
    Bypassed(&'a str),
    /// Approved at this URL.
    Approved(&'a str),
}

fn approval(definition: &Value) -> Approval<'_> {
    let given = text(definition, &["metadata", "annotations", APPROVED]).unwrap_or_default();
    let has_host = || given.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some());
    if given.is_empty() {
        Approval::Missing
    } else if given.starts_with("unapproved") {
        Approval::Bypassed(given)
    } else if has_host() {
        Approval::Approved(given)
    } else {
        Approval::Invalid(given)
    }
}

impl Approval<'_> {
    /// The error for a missing or invalid annotation.
    fn refused(self) -> Option<FieldError> {
        let field = format!("metadata.annotations[{APPROVED}]");
        match self {
            Self::Missing => Some(FieldError::required(field, &self.message())),
            Self::Invalid(given) => Some(FieldError::invalid(field, given, self.message())),
            Self::Bypassed(_) | Self::Approved(_) => None,
        }
    }

    const fn condition(self) -> (&'static str, &'static str) {
        match self {
            Self::Missing => ("False", "MissingAnnotation"),
            Self::Invalid(_) => ("False", "InvalidAnnotation"),
            Self::Bypassed(_) => ("False", "UnapprovedAnnotation"),
            Self::Approved(_) => ("True", "ApprovedAnnotation"),
        }
    }

    fn message(self) -> String {
        const PROPOSAL: &str = "https://github.com/kubernetes/enhancements/pull/1111";
        let wanted = format!("protected groups must have approval annotation {APPROVED:?}");
        match self {
            Self::Missing => format!("{wanted}, see {PROPOSAL}"),
            Self::Invalid(_) => {
                format!("{wanted} with either a URL or a reason starting with \"unapproved\", see {PROPOSAL}")
            }
            Self::Bypassed(given) => format!("not approved: {given:?}"),
            Self::Approved(given) => format!("approved in {given}"),
        }
    }
}

fn storage_version(definition: &Value) -> Option<&Value> {
    list(definition, &["spec", "versions"]).iter().find(|version| version["storage"] == true)
}

/// Returns the kind of a definition, unless its version is not served.
fn kind_of(definition: &Value) -> Option<Kind> {
    let version = storage_version(definition).filter(|version| version["served"] == true)?;
    let names = at(definition, &["spec", "names"])?;
    let owned = |text: &str| Cow::Owned(text.to_owned());
    let resource = Resource {
        group: owned(text(definition, &["spec", "group"])?),
        version: owned(text(version, &["name"])?),
        plural: owned(text(names, &["plural"])?),
        kind: owned(text(names, &["kind"])?),
        namespaced: text(definition, &["spec", "scope"]) == Some("Namespaced"),
    };
    let status = at(version, &["subresources", "status"]).is_some();
    let mut kind = Kind::registered(resource, Behaviour::Custom, status, true);
    kind.singular = owned(text(names, &["singular"]).unwrap_or_default());
    let words = |field: &str| list(names, &[field]).iter().filter_map(Value::as_str).map(owned).collect();
    kind.short_names = words("shortNames");
    kind.categories = words("categories");
    if let Some(scale) = at(version, &["subresources", "scale"]) {
        let path = |field: &str| text(scale, &[field]).map(str::to_owned);
        kind.subresources.push(Subresource::scale());
        kind.scale = Some(ScalePaths {
            wanted: path("specReplicasPath").unwrap_or_default(),
            present: path("statusReplicasPath").unwrap_or_default(),
            selector: path("labelSelectorPath"),
        });
    }
    kind.definition = Some(Arc::new(version.clone()));
    Some(kind)
}

impl Server {
    /// Updates the served kinds after a definition was written.
    pub(crate) fn define(&mut self, key: &ObjectKey, now: Now) {
        let Some(definition) = self.store.value(&CUSTOM_RESOURCE_DEFINITIONS, key) else { return };
        if json::is_terminating(&definition) {
            return;
        }
        self.accept(key, &definition, now);
        let Some(kind) = self.defined_by(&definition) else { return };
        let resource = kind.resource.clone();
        let before: Vec<Resource> = self
            .kinds
            .iter()
            .map(|kind| &kind.resource)
            .filter(|it| it.group == resource.group && it.plural == resource.plural && **it != resource)
            .cloned()
            .collect();
        self.kinds.replace(kind);
        for old in before {
            self.move_objects(&old, &resource, now);
        }
    }

    /// Returns the kind that a definition serves; a built-in kind takes precedence.
    fn defined_by(&self, definition: &Value) -> Option<Kind> {
        kind_of(definition).filter(|kind| {
            let Resource { group, plural, .. } = &kind.resource;
            !self
                .kinds
                .iter()
                .any(|other| !other.is_custom() && other.resource.group == *group && other.resource.plural == *plural)
        })
    }

    /// Rewrites objects in another version of their kind.
    fn move_objects(&mut self, from: &Resource, to: &Resource, now: Now) {
        let objects: Vec<(ObjectKey, Arc<Stored>)> =
            self.store.list(from, None).map(|(key, object)| (key.clone(), object.clone())).collect();
        self.kinds.unregister(from);
        self.store.forget(from);
        for (key, object) in objects {
            let mut moved = Value::clone(&object.value());
            json::set(&mut moved, &["apiVersion"], Some(to.api_version().into()));
            self.store.put(to, key, moved, now.elapsed);
        }
    }

    /// Accepts the names of a definition, then establishes it.
    fn accept(&mut self, key: &ObjectKey, definition: &Value, now: Now) {
        let names = at(definition, &["spec", "names"]).cloned().unwrap_or_default();
        let mut accepted = definition.clone();
        json::set(&mut accepted, &["status", "acceptedNames"], Some(names));
        set_condition(&mut accepted, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now);
        if text(definition, &["spec", "group"]).is_some_and(is_protected) {
            let approval = approval(definition);
            let (status, reason) = approval.condition();
            let (kind, message) = ("KubernetesAPIApprovalPolicyConformant", approval.message());
            set_condition(&mut accepted, kind, status, reason, &message, now);
        }
        if !has_condition(definition, "Established", "True") {
            let message = "the initial names have been accepted";
            set_condition(&mut accepted, "Established", "False", "Installing", message, now);
            self.store.put(&CUSTOM_RESOURCE_DEFINITIONS, key.clone(), accepted.clone(), now.elapsed);
            set_condition(&mut accepted, "Established", "True", "InitialNamesAccepted", message, now);
        }
        json::carry_over(definition, &mut accepted, &["metadata", "resourceVersion"]);
        if accepted != *definition {
            self.store.put(&CUSTOM_RESOURCE_DEFINITIONS, key.clone(), accepted, now.elapsed);
        }
    }

    /// Deletes all objects of the kind; the kind is removed with the last of them.
    pub(crate) fn delete_definition(
        &mut self,
        write: Write<'_>,
        kind: &Kind,
        key: &ObjectKey,
        old: &Arc<Value>,
    ) -> Deleted {
        let mut new = Value::clone(old);
        json::set_default(&mut new, &["metadata", "deletionTimestamp"], write.now.stamp(0));
        let mut finalizers = list(old, &["metadata", "finalizers"]).to_vec();
        if !finalizers.iter().any(|name| name == CLEANUP) {
            finalizers.push(CLEANUP.into());
        }
        json::set(&mut new, &["metadata", "finalizers"], Some(finalizers.into()));
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        set_condition(&mut new, "Terminating", "True", "InstanceDeletionPending", message, write.now);
        if write.dry_run {
            return Deleted::Terminating(Arc::new(new));
        }
        let terminating = self.store.put(&kind.resource, key.clone(), new, write.now.elapsed);
        if let Some(kind) = self.defined_by(&terminating) {
            for key in self.keys_of(&kind.resource) {
                let target = Target {
                    verb: Verb::Delete,
                    resource: kind.resource.clone(),
                    namespace: key.namespace().map(str::to_owned),
                    name: Some(key.name().to_owned()),
                    subresource: None,
                };
                // An object that cannot be deleted stays, and so does its definition.
                drop(self.delete(Write { target: &target, ..write }, &DeleteOptions::default()));
            }
        }
        self.finish_definition(key, write.now);
        Deleted::Terminating(terminating)
    }

    fn keys_of(&self, resource: &Resource) -> Vec<ObjectKey> {
        self.store.list(resource, None).map(|(key, _)| key.clone()).collect()
    }

    /// Finalizes a terminating definition after its last object is deleted.
    pub(crate) fn finish_definition(&mut self, key: &ObjectKey, now: Now) {
        let Some(definition) = self.store.value(&CUSTOM_RESOURCE_DEFINITIONS, key) else { return };
        if !json::is_terminating(&definition) {
            return;
        }
        let custom = self.defined_by(&definition).map(|kind| kind.resource);
        let mut new = Value::clone(&definition);
        if custom.as_ref().is_some_and(|it| self.store.list(it, None).next().is_some()) {
            let message = "CustomResource deletion is in progress";
            set_condition(&mut new, "Terminating", "True", "InstanceDeletionInProgress", message, now);
        } else {
            if let Some(resource) = custom {
                self.kinds.unregister(&resource);
                self.store.forget(&resource);
            }
            let kept: Vec<&str> = json::finalizers(&definition).into_iter().filter(|name| *name != CLEANUP).collect();
            if kept.is_empty() {
                self.store.remove(&CUSTOM_RESOURCE_DEFINITIONS, key, now.elapsed);
                return;
            }
            json::set(&mut new, &["metadata", "finalizers"], Some(json!(kept)));
        }
        if new != *definition {
            self.store.put(&CUSTOM_RESOURCE_DEFINITIONS, key.clone(), new, now.elapsed);
        }
    }

    /// Rejects creates of a kind whose definition is terminating.
    pub(crate) fn check_definition(&self, kind: &Kind, name: &str) -> Result<(), Status> {
        if !kind.is_custom() {
            return Ok(());
        }
        let definition = self.store.value(&CUSTOM_RESOURCE_DEFINITIONS, &definition_key(kind));
        if definition.is_some_and(|definition| json::is_terminating(&definition)) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&kind.resource, name, why));
        }
        Ok(())
    }
}

/// Returns the name of the definition of a custom kind.
pub(crate) fn definition_key(kind: &Kind) -> ObjectKey {
    ObjectKey::cluster_scoped(format!("{}.{}", kind.resource.plural, kind.resource.group))
}

fn has_condition(definition: &Value, kind: &str, status: &str) -> bool {
    list(definition, &["status", "conditions"])
        .iter()
        .any(|condition| text(condition, &["type"]) == Some(kind) && text(condition, &["status"]) == Some(status))
}

fn set_condition(definition: &mut Value, kind: &str, status: &str, reason: &str, message: &str, now: Now) {
    let mut conditions = list(definition, &["status", "conditions"]).to_vec();
    let known = conditions.iter_mut().find(|condition| text(condition, &["type"]) == Some(kind));
    let since = known
        .as_ref()
        .filter(|known| text(known, &["status"]) == Some(status))
        .and_then(|known| text(known, &["lastTransitionTime"]).map(str::to_owned));
    let condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since.unwrap_or_else(|| now.stamp(0)),
    });
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
    json::set(definition, &["status", "conditions"], Some(conditions.into()));
}
