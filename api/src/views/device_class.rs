//! The view of a `DeviceClass`.

use crate::intern::InternedStr;
use crate::resource::Resource;

crate::view! {
    /// A device class of dynamic resource allocation.
    pub struct DeviceClass {
        resource: Resource::cluster_scoped("resource.k8s.io", "v1", "deviceclasses", "DeviceClass");

        "spec" @ 2 {
            /// `spec.extendedResourceName`: the extended resource by which pods may request its devices.
            pub extended_resource_name: Option<InternedStr> = "extendedResourceName" @ 4;
        }
    }
}
