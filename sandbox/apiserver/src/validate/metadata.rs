//! Metadata of all objects.
//!
//! # Upstream
//! `apimachinery/pkg/api/validation/objectmeta.go`

use std::collections::BTreeSet;

use serde_json::Value;

use super::field_path::{Errors, FieldPath, immutable};
use super::go_format;
use super::names::{self, Rule};
use crate::json::{finalizers, is_terminating};
use crate::kinds::Kind;
use crate::status::FieldError;

/// The rule that names of a kind follow.
fn rule_of(kind: &Kind) -> Rule {
    match (&*kind.resource.group, &*kind.resource.plural) {
        ("", "namespaces" | "services") | ("apps", "statefulsets") => names::label,
        // After the signer and a colon, the name of a bundle is a subdomain. A path segment is close enough here.
        ("rbac.authorization.k8s.io", _) | ("certificates.k8s.io", "clustertrustbundles") => names::path_segment,
        _ => names::subdomain,
    }
}

pub(super) fn object(kind: &Kind, metadata: &FieldPath<'_, '_>, errors: &mut Errors) {
    let rule = rule_of(kind);
    let prefix = metadata.get("generateName");
    if !prefix.is_empty() {
        // The generated suffix follows a hyphen at the end.
        let whole = prefix.text().strip_suffix('-').map(|start| format!("{start}a"));
        errors
            .extend(rule(whole.as_deref().unwrap_or(prefix.text())).into_iter().map(|problem| prefix.invalid(problem)));
    }
    let name = metadata.get("name");
    if name.is_empty() {
        errors.push(name.required("name or generateName is required"));
    } else {
        name.follows(rule, errors);
    }
    metadata.get("generation").not_negative(errors);
    labels(&metadata.get("labels"), errors);
    annotations(&metadata.get("annotations"), errors);
    owners(&metadata.get("ownerReferences"), errors);
    check_finalizers(&metadata.get("finalizers"), errors);
}

pub(super) fn labels(labels: &FieldPath<'_, '_>, errors: &mut Errors) {
    for (key, value) in labels.value.as_object().into_iter().flatten() {
        labels.refuse(key, names::qualified, errors);
        let value = value.as_str().unwrap_or_default();
        labels.refuse(value, names::label_value, errors);
    }
}

const ANNOTATIONS_LIMIT: usize = 256 * 1024;

pub(super) fn annotations(annotations: &FieldPath<'_, '_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in annotations.value.as_object().into_iter().flatten() {
        size += key.len() + value.as_str().unwrap_or_default().len();
        // The prefix of an annotation may have upper case letters.
        if !kcm_api::name::is_label_key(key) {
            let problems = names::qualified(&key.to_lowercase());
            errors.extend(problems.into_iter().map(|problem| annotations.refused(key.as_str(), problem)));
        }
    }
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError::too_long(annotations.to_string(), ANNOTATIONS_LIMIT));
    }
}

/// The number of controllers that errors name.
const MOST_CONTROLLERS: usize = 10;
/// The number of bytes of the owners that each error prints.
const SHOWN_OF_OWNERS: usize = 16 * 1024;

fn owners(owners: &FieldPath<'_, '_>, errors: &mut Errors) {
    let mut controller: Option<String> = None;
    let (mut controllers, mut all) = (0, None);
    for (place, owner) in owners.list().iter().enumerate() {
        let here = owners.index(place, owner);
        let version = here.get("apiVersion");
        let (group, short) = version.text().split_once('/').unwrap_or(("", version.text()));
        if version.is_empty() {
            errors.push(version.required("must not be empty"));
        } else if short.is_empty() || short.contains('/') {
            errors.push(version.refused(version.text(), "must be <group>/<version> or <version>"));
        }
        for field in ["kind", "name", "uid"] {
            let field = here.get(field);
            if field.is_empty() {
                errors.push(field.required("must not be empty"));
            }
        }
        let (kind, name) = (here.get("kind").text(), here.get("name").text());
        if kind == "Event" && matches!(version.text(), "v1" | "events.k8s.io/v1") {
            let detail = format!("{group}/v1, Kind=Event is disallowed from being an owner");
            errors.push(here.shown(go_format::json(owner), detail));
        }
        if here.get("controller").is_true() {
            let this = format!("{kind}/{name}");
            controllers += 1;
            if controllers > MOST_CONTROLLERS {
                continue;
            }
            if let Some(first) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                let all = all.get_or_insert_with(|| {
                    let text = go_format::json(owners.value);
                    let end = text.floor_char_boundary(SHOWN_OF_OWNERS);
                    text[..end].to_owned()
                });
                errors.push(owners.shown(all.as_str(), detail));
            } else {
                controller = Some(this);
            }
        }
    }
}

const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
const NOT_A_FINALIZER: &str = "name is neither a standard finalizer name nor is it fully qualified";

fn check_finalizers(finalizers: &FieldPath<'_, '_>, errors: &mut Errors) {
    for item in finalizers.items() {
        let name = item.text();
        finalizers.refuse(name, names::qualified, errors);
        if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            errors.push(item.invalid(NOT_A_FINALIZER));
        }
    }
    let has = |name: &str| finalizers.list().iter().any(|item| item == name);
    if has("orphan") && has("foregroundDeletion") {
        errors.push(finalizers.invalid("finalizer orphan and foregroundDeletion cannot be both set"));
    }
}

/// The finalizers of the content of a namespace.
pub(super) fn namespace_finalizers(finalizers: &FieldPath<'_, '_>, errors: &mut Errors) {
    for item in finalizers.items() {
        let name = item.text();
        if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            errors.push(finalizers.refused(name, NOT_A_FINALIZER));
        }
    }
}

pub(super) fn change(old: &Value, new: &Value, errors: &mut Errors) {
    for field in ["name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        immutable(old, new, &format!("metadata.{field}"), errors);
    }
    if is_terminating(old) {
        let known: BTreeSet<&str> = finalizers(old).into_iter().collect();
        let added: Vec<&str> = finalizers(new).into_iter().filter(|name| !known.contains(name)).collect();
        if !added.is_empty() {
            let added = added.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                format!("no new finalizers can be added if the object is being deleted, found new finalizers []string{{{added}}}"),
            ));
        }
    }
}
