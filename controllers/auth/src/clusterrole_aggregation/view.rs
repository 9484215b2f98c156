//! The view of cluster roles.

use kcm_framework::api::{InternedStr, LabelSelector, Resource};
use serde::Serialize;

kcm_framework::api::view! {
    /// A cluster role.
    pub(super) struct ClusterRole {
        resource: Resource::cluster_scoped("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole");

        /// `aggregationRule`; absent if it is no aggregated role.
        pub(super) aggregation: Option<AggregationRule> = "aggregationRule";
        /// `rules`
        pub(super) rules: Vec<PolicyRule> = "rules";
    }
}

kcm_framework::api::message! {
    /// An aggregation rule.
    pub(super) struct AggregationRule {
        /// The selectors; a role that any of them selects is aggregated.
        pub(super) selectors: Vec<LabelSelector> = "clusterRoleSelectors";
    }
}

kcm_framework::api::message! {
    /// A rule of a role. An absent list is an empty one.
    #[derive(Eq, Hash, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct PolicyRule {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        api_groups: Vec<InternedStr> = "apiGroups";
        #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
        non_resource_urls: Vec<InternedStr> = "nonResourceURLs";
        #[serde(skip_serializing_if = "Vec::is_empty")]
        resource_names: Vec<InternedStr> = "resourceNames";
        #[serde(skip_serializing_if = "Vec::is_empty")]
        resources: Vec<InternedStr> = "resources";
        verbs: Vec<InternedStr> = "verbs";
    }
}
