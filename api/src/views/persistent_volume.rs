//! The view of a `PersistentVolume`.

use serde::Deserialize;

use super::volume_access::{AccessModes, VolumeMode};
use crate::documented::Documented;
use crate::intern::InternedStr;
use crate::key::Uid;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource::Resource;
use crate::resource_list::ResourceList;

/// A persistent volume with its JSON, which has the source of the volume.
pub type PersistentVolume = Documented<PersistentVolumeView>;

crate::view! {
    /// The fields of a persistent volume that decisions read.
    pub struct PersistentVolumeView {
        resource: Resource::cluster_scoped("", "v1", "persistentvolumes", "PersistentVolume");

        "spec" @ 2 {
            /// `spec.capacity`, empty if it is absent.
            pub capacity: ResourceList = "capacity" @ 1;
            let access_modes: Vec<InternedStr> = "accessModes" @ 3;
            /// `spec.accessModes`, as a set.
            pub access_modes: AccessModes = AccessModes::of(&access_modes);
            /// `spec.claimRef`: the claim that the volume is bound to, or reserved for.
            pub claim: Option<ClaimReference> = "claimRef" @ 4;
            /// Reclaim policy of the volume: `spec.persistentVolumeReclaimPolicy`.
            pub reclaim_policy: ReclaimPolicy = "persistentVolumeReclaimPolicy" @ 5;
            /// `spec.storageClassName`, empty if it is absent.
            pub storage_class_name: InternedStr = "storageClassName" @ 6;
            /// Volume mode of the volume: `spec.volumeMode`.
            pub volume_mode: VolumeMode = "volumeMode" @ 8;
            /// `spec.volumeAttributesClassName`, `None` if it is absent.
            pub volume_attributes_class_name: Option<InternedStr> = "volumeAttributesClassName" @ 10;
        }
        "status" @ 3 {
            /// Phase of the volume: `status.phase`.
            pub phase: VolumePhase = "phase" @ 1;
        }
    }
}

crate::message! {
    /// A claim as its volume names it.
    pub struct ClaimReference {
        /// `namespace`, empty if it is absent.
        pub namespace: InternedStr = "namespace" @ 2;
        /// `name`, empty if it is absent.
        pub name: Box<str> = "name" @ 3;
        /// `uid`, unset until the claim is known.
        pub uid: Uid = "uid" @ 4;
    }
}

/// The phases of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[non_exhaustive]
pub enum VolumePhase {
    /// The volume is not available yet.
    Pending,
    /// Not bound to any claim.
    Available,
    /// Bound to a claim.
    Bound,
    /// Its claim was deleted, and the volume is not reclaimed yet.
    Released,
    /// It could not be reclaimed.
    Failed,
    /// Not set, or an unknown phase.
    #[default]
    #[serde(other)]
    Other,
}

impl ProtobufType for VolumePhase {
    const KIND: Kind = Kind::Text;
}

/// Treatment of a volume whose claim was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum ReclaimPolicy {
    /// The volume is kept for an administrator.
    Retain,
    /// The volume and its storage are deleted.
    Delete,
    /// The storage is emptied, and the volume becomes available.
    Recycle,
    /// Not set, or an unknown policy.
    #[default]
    #[serde(other)]
    Other,
}

impl ProtobufType for ReclaimPolicy {
    const KIND: Kind = Kind::Text;
}

impl PersistentVolumeView {
    /// The volume attributes class of the volume; `None` if it has none.
    #[must_use]
    pub fn volume_attributes_class(&self) -> Option<&str> {
        self.volume_attributes_class_name.as_deref().filter(|name| !name.is_empty())
    }
}
