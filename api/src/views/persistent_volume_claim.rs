//! The view of a `PersistentVolumeClaim`.

use crate::intern::InternedStr;
use crate::resource::Resource;
use crate::resource_list::ResourceList;

crate::view! {
    /// A persistent volume claim.
    pub struct PersistentVolumeClaim {
        resource: Resource::namespaced("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim");
        // names the storage class of old claims, before the field does
        annotations: ["volume.beta.kubernetes.io/storage-class"];

        "spec" @ 2 {
            "resources" @ 2 {
                /// `spec.resources.requests`, empty if it is absent.
                pub requests: ResourceList = "requests" @ 2;
            }
            /// `spec.storageClassName`, `None` if it is absent.
            pub storage_class_name: Option<InternedStr> = "storageClassName" @ 5;
            /// `spec.volumeAttributesClassName`, `None` if it is absent.
            pub volume_attributes_class_name: Option<InternedStr> = "volumeAttributesClassName" @ 9;
        }
        "status" @ 3 {
            /// `status.allocatedResources`: storage that was allocated for an unfinished expansion.
            pub allocated_resources: ResourceList = "allocatedResources" @ 5;
            /// `status.currentVolumeAttributesClassName`, `None` if it is absent.
            pub current_volume_attributes_class_name: Option<InternedStr> = "currentVolumeAttributesClassName" @ 8;
            "modifyVolumeStatus" @ 9 {
                /// `status.modifyVolumeStatus.targetVolumeAttributesClassName`, empty if it is absent.
                pub target_volume_attributes_class_name: InternedStr = "targetVolumeAttributesClassName" @ 1;
            }
        }
    }
}

impl PersistentVolumeClaim {
    /// Returns the name of the storage class, or `None` if the claim has none.
    ///
    /// # Upstream
    /// `storagehelpers.GetPersistentVolumeClaimClass`.
    #[must_use]
    pub fn storage_class(&self) -> Option<&str> {
        let annotation = self.metadata.annotations.get("volume.beta.kubernetes.io/storage-class");
        annotation.or(self.storage_class_name.as_deref()).filter(|class| !class.is_empty())
    }

    /// The volume attributes classes that the claim asks for, has, or is on its way to.
    pub fn volume_attributes_classes(&self) -> impl Iterator<Item = &str> {
        let names = [
            self.volume_attributes_class_name.as_deref(),
            self.current_volume_attributes_class_name.as_deref(),
            Some(&*self.target_volume_attributes_class_name),
        ];
        names.into_iter().flatten().filter(|name| !name.is_empty())
    }
}
