//! The resources that a script can record.

/// The path of the objects of all namespaces, by their plural.
const PATHS: [(&str, &str); 44] = [
    ("configmaps", "/api/v1"),
    ("endpoints", "/api/v1"),
    ("events", "/api/v1"),
    ("limitranges", "/api/v1"),
    ("namespaces", "/api/v1"),
    ("nodes", "/api/v1"),
    ("persistentvolumeclaims", "/api/v1"),
    ("persistentvolumes", "/api/v1"),
    ("pods", "/api/v1"),
    ("podtemplates", "/api/v1"),
    ("replicationcontrollers", "/api/v1"),
    ("resourcequotas", "/api/v1"),
    ("secrets", "/api/v1"),
    ("serviceaccounts", "/api/v1"),
    ("services", "/api/v1"),
    ("validatingadmissionpolicies", "/apis/admissionregistration.k8s.io/v1"),
    ("controllerrevisions", "/apis/apps/v1"),
    ("daemonsets", "/apis/apps/v1"),
    ("deployments", "/apis/apps/v1"),
    ("replicasets", "/apis/apps/v1"),
    ("statefulsets", "/apis/apps/v1"),
    ("customresourcedefinitions", "/apis/apiextensions.k8s.io/v1"),
    ("horizontalpodautoscalers", "/apis/autoscaling/v2"),
    ("cronjobs", "/apis/batch/v1"),
    ("jobs", "/apis/batch/v1"),
    ("clustertrustbundles", "/apis/certificates.k8s.io/v1"),
    ("podcertificaterequests", "/apis/certificates.k8s.io/v1"),
    ("leases", "/apis/coordination.k8s.io/v1"),
    ("certificatesigningrequests", "/apis/certificates.k8s.io/v1"),
    ("endpointslices", "/apis/discovery.k8s.io/v1"),
    ("storageversions", "/apis/internal.apiserver.k8s.io/v1alpha1"),
    ("ipaddresses", "/apis/networking.k8s.io/v1"),
    ("servicecidrs", "/apis/networking.k8s.io/v1"),
    ("poddisruptionbudgets", "/apis/policy/v1"),
    ("clusterroles", "/apis/rbac.authorization.k8s.io/v1"),
    ("roles", "/apis/rbac.authorization.k8s.io/v1"),
    ("devicetaintrules", "/apis/resource.k8s.io/v1"),
    ("resourceclaims", "/apis/resource.k8s.io/v1"),
    ("resourcepoolstatusrequests", "/apis/resource.k8s.io/v1alpha3"),
    ("podgroups", "/apis/scheduling.k8s.io/v1beta1"),
    ("storageclasses", "/apis/storage.k8s.io/v1"),
    ("storageversionmigrations", "/apis/storagemigration.k8s.io/v1"),
    ("volumeattachments", "/apis/storage.k8s.io/v1"),
    ("volumeattributesclasses", "/apis/storage.k8s.io/v1"),
];

/// The path of the objects of a resource, if it is one of those that are known here.
pub(super) fn path(resource: &str) -> Option<String> {
    PATHS.iter().find(|(plural, _)| *plural == resource).map(|(plural, group)| format!("{group}/{plural}"))
}
