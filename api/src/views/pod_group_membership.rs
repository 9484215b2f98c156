//! The part of pods that names their pod group.

use crate::intern::InternedStr;

crate::message! {
    /// The pod group of a pod.
    pub struct PodGroupMembership {
        "spec" @ 2 {
            "schedulingGroup" @ 43 {
                let group: Option<InternedStr> = "podGroupName" @ 1;
                /// The name of the `PodGroup`, in the namespace of the pod: `spec.schedulingGroup.podGroupName`. `None` if the
                /// pod is in no group.
                pub group: Option<InternedStr> = group.filter(|name| !name.is_empty());
            }
        }
    }
}
