//! The view of storage classes.

use kcm_framework::api::{InternedStr, Resource};

kcm_framework::api::view! {
    pub(super) struct StorageClass {
        resource: Resource::cluster_scoped("storage.k8s.io", "v1", "storageclasses", "StorageClass");
        // name the default classes
        annotations: [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class"
        ];

        /// Plugin or driver that provisions volumes: `provisioner`.
        pub(super) provisioner: InternedStr = "provisioner" @ 2;
        /// `reclaimPolicy`, empty if it is absent.
        pub(super) reclaim_policy: InternedStr = "reclaimPolicy" @ 4;
        pub(super) mount_options: Box<[InternedStr]> = "mountOptions" @ 5;
        /// `volumeBindingMode`, empty if it is absent.
        pub(super) binding_mode: InternedStr = "volumeBindingMode" @ 7;
    }
}

impl StorageClass {
    /// Returns `true` if the class is a default class.
    pub(super) fn is_default(&self) -> bool {
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|key| self.metadata.annotations.get(key) == Some("true"))
    }
}
