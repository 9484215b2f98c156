//! What the API server refuses. Pure; only what a controller or a test notices.
//!
//! # Upstream
//! `apimachinery/pkg/api/validation`, `pkg/apis/{core,apps}/validation`

use kcm_api::name::{is_dns_label, is_dns_subdomain};
use kcm_api::{LabelSelector, Selector};
use serde::Deserialize;
use serde_json::Value;

use crate::kinds::{Behaviour, Kind};
use crate::object::{at, finalizers, list, name, text};
use crate::selection::labels_of;
use crate::status::FieldError;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// Problems of an object as it would be stored, whether new or changed.
pub(crate) fn object(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_name(kind, object, &mut errors);
    check_owners(object, &mut errors);
    match kind.behaviour {
        Behaviour::Pod => check_pod_spec(object.get("spec"), "spec", &mut errors),
        Behaviour::ReplicaSet | Behaviour::Deployment => check_workload(object, &mut errors),
        Behaviour::Namespace | Behaviour::Plain | Behaviour::Custom => {}
    }
    errors
}

/// Problems of a change.
pub(crate) fn change(kind: &Kind, subresource: Option<&str>, old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["name", "namespace", "uid"] {
        immutable(old, new, &["metadata", field], &mut errors);
    }
    if crate::object::is_terminating(old) {
        let known = finalizers(old);
        let added: Vec<&str> = finalizers(new).into_iter().filter(|name| !known.contains(name)).collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", detail));
        }
    }
    match (kind.behaviour, subresource) {
        (Behaviour::ReplicaSet, Some("status")) => check_replica_set_status(new, &mut errors),
        (Behaviour::ReplicaSet | Behaviour::Deployment, None) => {
            immutable(old, new, &["spec", "selector"], &mut errors);
        }
        (Behaviour::Pod, None) => check_pod_change(old, new, &mut errors),
        _ => {}
    }
    errors
}

fn immutable(old: &Value, new: &Value, path: &[&str], errors: &mut Vec<FieldError>) {
    if at(old, path) != at(new, path) {
        let value = at(new, path).cloned().unwrap_or_else(|| "".into());
        errors.push(FieldError::invalid(path.join("."), value, "field is immutable"));
    }
}

fn check_name(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let name = name(object);
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
        return;
    }
    let is_namespace = kind.behaviour == Behaviour::Namespace;
    let (longest, well_formed, rule) =
        if is_namespace { (63, is_dns_label(name), LABEL) } else { (253, is_dns_subdomain(name), SUBDOMAIN) };
    let problem = if name.len() > longest { format!("must be no more than {longest} bytes") } else { rule.to_owned() };
    if !well_formed {
        errors.push(FieldError::invalid("metadata.name", name, problem));
    }
}

fn check_owners(object: &Value, errors: &mut Vec<FieldError>) {
    let owners = list(object, &["metadata", "ownerReferences"]);
    let mut controller: Option<String> = None;
    for owner in owners {
        for (field, detail) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(owner, &[field]).unwrap_or_default().is_empty() {
                errors.push(FieldError::invalid(format!("metadata.ownerReferences.{field}"), "", detail));
            }
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let this = format!("{}/{}", text(owner, &["kind"]).unwrap_or_default(), name_of_owner(owner));
            if let Some(first) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                errors.push(FieldError::invalid("metadata.ownerReferences", owners.to_vec(), detail));
            } else {
                controller = Some(this);
            }
        }
    }
}

fn name_of_owner(owner: &Value) -> &str {
    text(owner, &["name"]).unwrap_or_default()
}

fn check_pod_spec(spec: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let containers = spec.map_or(&[][..], |spec| list(spec, &["containers"]));
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let path = format!("{path}.containers[{index}]");
        match text(container, &["name"]).filter(|name| !name.is_empty()) {
            None => errors.push(FieldError::required(format!("{path}.name"), "")),
            Some(name) if !is_dns_label(name) => {
                errors.push(FieldError::invalid(format!("{path}.name"), name, LABEL));
            }
            Some(name) if seen.contains(&name) => errors.push(FieldError::duplicate(format!("{path}.name"), name)),
            Some(name) => seen.push(name),
        }
        if text(container, &["image"]).unwrap_or_default().is_empty() {
            errors.push(FieldError::required(format!("{path}.image"), ""));
        }
    }
}

fn check_workload(object: &Value, errors: &mut Vec<FieldError>) {
    for field in ["replicas", "minReadySeconds"] {
        let path = ["spec", field];
        if let Some(number) = at(object, &path).and_then(Value::as_i64).filter(|number| *number < 0) {
            errors.push(FieldError::invalid(path.join("."), number, "must be greater than or equal to 0"));
        }
    }
    match at(object, &["spec", "selector"]) {
        None => {
            errors.push(FieldError::required("spec.selector", ""));
            refuse_template_labels(object, errors);
        }
        Some(selector) => check_selector(object, selector, errors),
    }
    let template = ["spec", "template", "spec"];
    check_pod_spec(at(object, &template), &template.join("."), errors);
    if let Some(policy) = text(object, &["spec", "template", "spec", "restartPolicy"]).filter(|it| *it != "Always") {
        errors.push(FieldError::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
}

fn check_selector(object: &Value, selector: &Value, errors: &mut Vec<FieldError>) {
    let parsed = LabelSelector::deserialize(selector).ok().and_then(|parsed| Selector::try_from(&parsed).ok());
    match parsed {
        None => errors.push(FieldError::invalid("spec.selector", selector.clone(), "invalid label selector")),
        // Upstream says so of replica sets too.
        Some(parsed) if parsed.is_everything() => {
            let detail = "empty selector is invalid for deployment";
            errors.push(FieldError::invalid("spec.selector", selector.clone(), detail));
        }
        Some(parsed) => {
            let template = object.pointer("/spec/template").unwrap_or(&Value::Null);
            if !parsed.matches(&labels_of(template)) {
                refuse_template_labels(object, errors);
            }
        }
    }
}

fn refuse_template_labels(object: &Value, errors: &mut Vec<FieldError>) {
    let labels = at(object, &["spec", "template", "metadata", "labels"]).cloned().unwrap_or_default();
    let detail = "`selector` does not match template `labels`";
    errors.push(FieldError::invalid("spec.template.metadata.labels", labels, detail));
}

fn check_replica_set_status(new: &Value, errors: &mut Vec<FieldError>) {
    let count = |field: &str| at(new, &["status", field]).and_then(Value::as_i64).unwrap_or(0);
    let fields = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    for field in fields {
        if count(field) < 0 {
            let path = format!("status.{field}");
            errors.push(FieldError::invalid(path, count(field), "must be greater than or equal to 0"));
        }
    }
    for (field, bound, detail) in [
        ("fullyLabeledReplicas", "replicas", "cannot be greater than status.replicas"),
        ("readyReplicas", "replicas", "cannot be greater than status.replicas"),
        ("availableReplicas", "replicas", "cannot be greater than status.replicas"),
        ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
    ] {
        if count(field) > count(bound) {
            errors.push(FieldError::invalid(format!("status.{field}"), count(field), detail));
        }
    }
}

fn check_pod_change(old: &Value, new: &Value, errors: &mut Vec<FieldError>) {
    // What may change is taken out of both; the rest must be equal.
    let fixed = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        for field in ["activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"] {
            crate::object::set(&mut spec, &[field], None);
        }
        for containers in ["containers", "initContainers"] {
            for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
                for field in ["image", "imagePullPolicy"] {
                    crate::object::set(container, &[field], None);
                }
            }
        }
        spec
    };
    if fixed(old) != fixed(new) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        errors.push(FieldError::forbidden("spec", detail));
    }
}
