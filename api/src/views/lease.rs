//! The view of a Lease.

use jiff::Timestamp;

use crate::resource::Resource;

crate::view! {
    /// A Lease. A kubelet renews a Lease as its heartbeat.
    pub struct Lease {
        resource: Resource::namespaced("coordination.k8s.io", "v1", "leases", "Lease");

        "spec" @ 2 {
            let renew_time: Option<Timestamp> = "renewTime" @ 4;
            // Protobuf is read in whole seconds.
            /// `spec.renewTime` in whole seconds.
            pub renew_time: Option<Timestamp> =
                renew_time.and_then(|time| Timestamp::from_second(time.as_second()).ok());
        }
    }
}
