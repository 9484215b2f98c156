//! The view of pod groups.

use kcm_framework::api::{Documented, Resource};

/// A pod group with its JSON.
pub(super) type PodGroup = Documented<PodGroupView>;

kcm_framework::api::view! {
    /// The metadata of a pod group.
    pub(super) struct PodGroupView {
        resource: Resource::namespaced("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup");
    }
}
