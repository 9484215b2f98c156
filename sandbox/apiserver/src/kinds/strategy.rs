//! Per-kind strategies of the upstream registries. Pure.
//!
//! # Upstream
//! The strategies and storages in `pkg/registry`, `kube-aggregator` and `apiextensions-apiserver`

use kcm_api::{ObjectKey, Resource};

use crate::kinds::Kind;

/// Reports whether an update creates an absent object: `AllowCreateOnUpdate`.
pub(crate) fn put_creates(kind: &Kind) -> bool {
    let resource = &kind.resource;
    matches!(
        (&*resource.group, &*resource.plural),
        ("", "endpoints" | "events" | "limitranges" | "services")
            | ("coordination.k8s.io", "leases" | "leasecandidates")
            | ("node.k8s.io", "runtimeclasses")
            | ("rbac.authorization.k8s.io", "clusterrolebindings" | "clusterroles" | "rolebindings" | "roles")
    )
}

/// Reports whether an update requires a resource version: not `AllowUnconditionalUpdate`.
pub(crate) fn put_needs_version(kind: &Kind) -> bool {
    let resource = &kind.resource;
    kind.is_custom()
        || matches!(
            (&*resource.group, &*resource.plural),
            ("admissionregistration.k8s.io" | "coordination.k8s.io", _)
                | ("apiextensions.k8s.io", "customresourcedefinitions")
                | ("apiregistration.k8s.io", "apiservices")
                | ("certificates.k8s.io", "clustertrustbundles" | "podcertificaterequests")
                | ("internal.apiserver.k8s.io", "storageversions")
                | ("node.k8s.io", "runtimeclasses")
                | ("policy", "poddisruptionbudgets")
                | ("resource.k8s.io", "resourcepoolstatusrequests")
                | ("storage.k8s.io", "csidrivers" | "csinodes" | "csistoragecapacities" | "volumeattachments")
                | ("storagemigration.k8s.io", "storageversionmigrations")
        )
}

/// Reports whether a deletion returns the deleted object: `ReturnDeletedObject`.
pub(crate) fn delete_answers_with_object(kind: &Kind) -> bool {
    let resource = &kind.resource;
    matches!(
        (&*resource.group, &*resource.plural),
        (
            "",
            "namespaces"
                | "persistentvolumeclaims"
                | "persistentvolumes"
                | "pods"
                | "podtemplates"
                | "resourcequotas"
                | "serviceaccounts"
                | "services"
        ) | ("resource.k8s.io", _)
            | (
                "storage.k8s.io",
                "csidrivers" | "csinodes" | "storageclasses" | "volumeattachments" | "volumeattributesclasses"
            )
    )
}

/// Reports whether dependents are orphaned by default: `DefaultGarbageCollectionPolicy`.
pub(crate) fn orphans_by_default(resource: &Resource) -> bool {
    matches!((&*resource.group, &*resource.plural), ("", "replicationcontrollers") | ("batch", "jobs"))
}

/// Returns the etcd key, which some errors contain.
pub(crate) fn storage_key(kind: &Kind, key: &ObjectKey) -> String {
    let resource = &kind.resource;
    let prefix = match (&*resource.group, &*resource.plural) {
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        (group @ ("apiextensions.k8s.io" | "apiregistration.k8s.io"), plural) => format!("{group}/{plural}"),
        (group, plural) if kind.is_custom() => format!("{group}/{plural}"),
        (_, plural) => plural.to_owned(),
    };
    format!("/registry/{prefix}/{key}")
}
