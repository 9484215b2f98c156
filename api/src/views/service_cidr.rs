//! The view of a `ServiceCIDR`.

use super::pod_disruption_budget::CONDITION;
use crate::condition::Condition;
use crate::protobuf::Kind;
use crate::resource::Resource;

crate::view! {
    /// A `ServiceCIDR` without its JSON.
    pub struct ServiceCidr {
        resource: Resource::cluster_scoped("networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR");

        "spec" @ 2 {
            /// `spec.cidrs`: one range, or a range of each IP family.
            pub cidrs: Box<[Box<str>]> = "cidrs" @ 1;
        }
        "status" @ 3 {
            /// `status.conditions`, in the order served.
            pub conditions: Box<[Condition]> = "conditions" @ 1 as Kind::List(&CONDITION);
        }
    }
}
