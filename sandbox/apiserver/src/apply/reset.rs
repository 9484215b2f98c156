//! Reset fields: fields that a path does not write, and that no manager owns through it. Pure.
//!
//! # Upstream
//! `GetResetFields` of the strategies in `pkg/registry`, `pkg/registry/core/pod/strategy.go` for the rest of the pod's
//! subresources

use std::sync::LazyLock;

use super::fieldset::FieldSet;
use crate::kinds::Kind;

static NOTHING: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);
static STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_paths(&[&["status"]]));
static SPEC: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_paths(&[&["spec"]]));
static SPEC_AND_STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_paths(&[&["spec"], &["status"]]));
static SPEC_AND_METADATA: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_paths(&[&["spec"], &["metadata"]]));
static OF_POD_STATUS: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_paths(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
});
static OF_DEPLOYMENT_STATUS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of_paths(&[&["spec"], &["metadata", "labels"]]));
static OF_REQUEST_STATUS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of_paths(&[&["spec"], &["status", "conditions"]]));
static OF_REQUEST_APPROVAL: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of_paths(&[&["spec"], &["status", "certificate"]]));

/// Returns the subtrees that a write to a subresource, or to the resource itself, does not change.
pub(crate) fn reset_fields(kind: &Kind, subresource: Option<&str>) -> &'static FieldSet {
    let resource = &kind.resource;
    match (&*resource.group, &*resource.plural, subresource) {
        ("certificates.k8s.io", "certificatesigningrequests", None) => &SPEC_AND_STATUS,
        ("certificates.k8s.io", "certificatesigningrequests", Some("status")) => &OF_REQUEST_STATUS,
        ("certificates.k8s.io", "certificatesigningrequests", Some(_)) => &OF_REQUEST_APPROVAL,
        ("", "pods", Some("status")) => &OF_POD_STATUS,
        ("apps", "deployments", Some("status")) => &OF_DEPLOYMENT_STATUS,
        (
            "admissionregistration.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "resource.k8s.io"
            | "storagemigration.k8s.io",
            _,
            Some("status"),
        )
        | ("networking.k8s.io", "servicecidrs", Some("status"))
        | ("storage.k8s.io", "volumeattachments", Some("status")) => &SPEC_AND_METADATA,
        (_, _, Some("status")) if kind.is_custom() => &SPEC_AND_METADATA,
        (_, _, Some("status")) => &SPEC,
        // `finalize` of namespaces, `ephemeralcontainers` and `resize` of pods.
        (_, _, Some(_)) => &STATUS,
        (_, _, None) if kind.status => &STATUS,
        (_, _, None) => &NOTHING,
    }
}
