//! The view of a `PodGroup`.

use crate::intern::InternedStr;
use crate::resource::Resource;
use crate::views::pod_claims::ClaimEntryStatus;

crate::view! {
    /// A group of pods that are scheduled together.
    pub struct PodGroup {
        resource: Resource::namespaced("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup");

        "spec" @ 2 {
            /// `spec.resourceClaims`, in order.
            pub claims: Box<[GroupClaimEntry]> = "resourceClaims" @ 5;
        }
        "status" @ 3 {
            /// `status.resourceClaimStatuses`, in order.
            pub claim_statuses: Box<[ClaimEntryStatus]> = "resourceClaimStatuses" @ 2;
        }
    }
}

crate::message! {
    /// An entry of `spec.resourceClaims` of a group of pods.
    #[derive(Eq)]
    pub struct GroupClaimEntry {
        /// `name`
        pub name: InternedStr = "name" @ 1;
        /// `resourceClaimName`: a claim that the user creates.
        pub claim: Option<InternedStr> = "resourceClaimName" @ 2;
        /// `resourceClaimTemplateName`: the template of a claim that is created for the group.
        pub template: Option<InternedStr> = "resourceClaimTemplateName" @ 3;
    }
}
