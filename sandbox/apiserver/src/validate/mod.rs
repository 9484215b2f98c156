//! Validation of objects and of their changes. Pure.
//!
//! Rules read values through a [`field_path::FieldPath`], which knows the path of its value for errors.
//!
//! # Upstream
//! `apimachinery/pkg/api/validation`, `pkg/apis/*/validation`

mod access;
mod batch;
mod cluster;
mod config;
mod container;
mod event;
mod field_path;
mod go_format;
mod metadata;
mod names;
mod network;
mod pod;
mod pod_change;
mod resources;
mod scaling;
mod schedule;
mod scheduling;
mod security_context;
mod selector;
mod service;
mod storage;
mod volume;
mod workloads;

use serde_json::Value;

use self::field_path::{Errors, FieldPath, declared_immutable, immutable};
use crate::kinds::{Behaviour, Kind};
use crate::status::FieldError;

/// Problems of an object as it would be stored, whether new or changed.
pub(crate) fn object(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = FieldPath::root(object);
    metadata::object(kind, &root.get("metadata"), &mut errors);
    if kind.is_custom() || kind.behaviour == Behaviour::Review {
        return errors;
    }
    match (&*kind.resource.group, &*kind.resource.plural) {
        ("", "pods") => {
            // Only what is stored has a version.
            let is_new = root.get("metadata.resourceVersion").is_absent();
            let of = if is_new { pod::Of::NewPod } else { pod::Of::StoredPod };
            pod::spec(&root.get("spec"), of, &mut errors);
            pod::gated(&root.get("spec"), is_new, &mut errors);
        }
        ("", "podtemplates") => pod::template(&root.get("template"), &mut errors),
        ("apps", "controllerrevisions") => workloads::revision(&root, &mut errors),
        ("apps", _) => workloads::object(kind, &root, &mut errors),
        ("", "replicationcontrollers") => workloads::replication_controller(&root, &mut errors),
        ("batch", "jobs") => batch::job(&root, &mut errors),
        ("batch", "cronjobs") => batch::cron_job(&root, &mut errors),
        ("policy", "poddisruptionbudgets") => scaling::budget(&root, &mut errors),
        ("autoscaling", _) => scaling::autoscaler(&root, &mut errors),
        ("", "services") => service::service(&root, &mut errors),
        ("", "endpoints") => service::endpoints(&root, &mut errors),
        ("discovery.k8s.io", "endpointslices") => service::slice(&root, &mut errors),
        ("networking.k8s.io", "ingresses") => network::ingress(&root, &mut errors),
        ("networking.k8s.io", "networkpolicies") => network::policy(&root, &mut errors),
        ("", "configmaps") => config::map(&root, &mut errors),
        ("", "secrets") => config::secret(&root, &mut errors),
        ("", "persistentvolumeclaims") => storage::claim(&root.get("spec"), &mut errors),
        ("", "persistentvolumes") => storage::volume(&root, &mut errors),
        ("storage.k8s.io", "storageclasses") => storage::class(&root, &mut errors),
        ("", "namespaces") => metadata::namespace_finalizers(&root.get("spec.finalizers"), &mut errors),
        ("", "nodes") => cluster::node(&root, &mut errors),
        ("coordination.k8s.io", "leases") => cluster::lease(&root, &mut errors),
        ("", "events") => cluster::event(&root, &mut errors),
        ("", "limitranges") => cluster::limit_range(&root, &mut errors),
        ("", "resourcequotas") => cluster::quota(&root, &mut errors),
        ("rbac.authorization.k8s.io", plural @ ("roles" | "clusterroles")) => {
            access::role(plural == "roles", &root, &mut errors);
        }
        ("rbac.authorization.k8s.io", plural) => access::binding(plural == "rolebindings", &root, &mut errors),
        ("scheduling.k8s.io", "priorityclasses") => access::priority_class(&root, &mut errors),
        ("certificates.k8s.io", "certificatesigningrequests") => cluster::certificate_request(&root, &mut errors),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations" | "mutatingwebhookconfigurations") => {
            cluster::webhooks(&root, &mut errors);
        }
        ("node.k8s.io", "runtimeclasses") => root.get("handler").follows(names::label, &mut errors),
        _ => {}
    }
    errors
}

/// Further problems of an event that is made through `events.k8s.io`.
pub(crate) fn new_event(event: &Value) -> Vec<FieldError> {
    event::new(event)
}

/// Further problems of a change of an event through `events.k8s.io`.
pub(crate) fn event_change(old: &Value, new: &Value) -> Vec<FieldError> {
    event::change(old, new)
}

/// Problems of a change.
pub(crate) fn change(kind: &Kind, subresource: Option<&str>, old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    metadata::change(old, new, &mut errors);
    let root = FieldPath::root(new);
    match (&*kind.resource.group, &*kind.resource.plural, subresource) {
        ("", "pods", None) => pod_change::check(old, new, &mut errors),
        ("", "pods", Some("status")) => pod::status(&root.get("status"), &mut errors),
        ("", "namespaces", Some("status")) => cluster::namespace_status(new, &mut errors),
        ("apps", "controllerrevisions", _) => immutable(old, new, "data", &mut errors),
        ("apps", ..) => workloads::change(kind, subresource, old, new, &mut errors),
        ("batch", "jobs", None) => batch::change(old, new, &mut errors),
        ("policy", "poddisruptionbudgets", Some("status")) => scaling::budget_status(&root, &mut errors),
        ("", "services", _) => service::service_change(subresource, old, new, &mut errors),
        ("discovery.k8s.io", "endpointslices", _) => declared_immutable(old, new, "addressType", &mut errors),
        ("", "configmaps" | "secrets", _) => config::change(old, new, &mut errors),
        ("", "persistentvolumeclaims", None) => storage::claim_change(old, new, &mut errors),
        ("", "persistentvolumes", None) => storage::volume_change(old, new, &mut errors),
        ("storage.k8s.io", "storageclasses", _) => storage::class_change(old, new, &mut errors),
        ("storage.k8s.io", "csidrivers", _) => storage::driver_change(old, new, &mut errors),
        ("", "nodes", _) => cluster::node_change(old, new, &mut errors),
        ("", "resourcequotas", None) => immutable(old, new, "spec.scopes", &mut errors),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings", _) => {
            access::binding_change(old, new, &mut errors);
        }
        ("scheduling.k8s.io", "priorityclasses", _) => access::priority_class_change(old, new, &mut errors),
        ("node.k8s.io", "runtimeclasses", _) => declared_immutable(old, new, "handler", &mut errors),
        ("networking.k8s.io", "ingressclasses", _) => immutable(old, new, "spec.controller", &mut errors),
        _ => {}
    }
    errors
}
