//! The view of classes.

use kcm_framework::api::{Documented, Resource};

/// A volume attributes class with its JSON.
pub(super) type VolumeAttributesClass = Documented<VolumeAttributesClassView>;

kcm_framework::api::view! {
    /// The metadata of a volume attributes class.
    pub(super) struct VolumeAttributesClassView {
        resource: Resource::cluster_scoped(
            "storage.k8s.io", "v1", "volumeattributesclasses", "VolumeAttributesClass"
        );
    }
}
