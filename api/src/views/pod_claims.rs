//! The resource claims of pods.

use crate::intern::InternedStr;

crate::message! {
    /// The resource claims of a pod.
    pub struct PodClaims {
        "spec" @ 2 {
            /// `spec.resourceClaims`, in order.
            pub entries: Box<[ClaimEntry]> = "resourceClaims" @ 39;
            let group: Option<SchedulingGroup> = "schedulingGroup" @ 43;
            /// `spec.schedulingGroup.podGroupName`, `None` if it is absent.
            pub group: Option<InternedStr> = group.and_then(|group| group.name);
        }
        "status" @ 3 {
            /// `status.resourceClaimStatuses`, in order.
            pub statuses: Box<[ClaimEntryStatus]> = "resourceClaimStatuses" @ 15;
            let extended: Option<ExtendedResourceClaim> = "extendedResourceClaimStatus" @ 18;
            /// `status.extendedResourceClaimStatus.resourceClaimName`, `None` if it is absent or empty.
            pub extended: Option<Box<str>> = extended.map(|extended| extended.name).filter(|name| !name.is_empty());
        }
    }
}

crate::message! {
    struct SchedulingGroup {
        name: Option<InternedStr> = "podGroupName" @ 1;
    }
}

crate::message! {
    struct ExtendedResourceClaim {
        name: Box<str> = "resourceClaimName" @ 2;
    }
}

crate::message! {
    /// An entry of `spec.resourceClaims` of a pod.
    #[derive(Eq)]
    pub struct ClaimEntry {
        /// `name`
        pub name: InternedStr = "name" @ 1;
        /// `resourceClaimName`: a claim that the user creates.
        pub claim: Option<InternedStr> = "resourceClaimName" @ 3;
        /// `resourceClaimTemplateName`: the template of a claim that is created for the pod.
        pub template: Option<InternedStr> = "resourceClaimTemplateName" @ 4;
    }
}

crate::message! {
    /// An entry of `status.resourceClaimStatuses` of a pod.
    #[derive(Eq)]
    pub struct ClaimEntryStatus {
        /// `name`: the entry of `spec.resourceClaims`.
        pub name: InternedStr = "name" @ 1;
        /// `resourceClaimName`, `None` if no claim is needed.
        pub claim: Option<Box<str>> = "resourceClaimName" @ 2;
    }
}
