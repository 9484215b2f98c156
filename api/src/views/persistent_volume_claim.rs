//! The view of a `PersistentVolumeClaim`.

use serde::{Deserialize, Deserializer};

use super::conditions::RawCondition;
use super::volume_access::{AccessModes, VolumeMode};
use crate::condition::ConditionStatus;
use crate::decode::fold;
use crate::documented::Documented;
use crate::intern::InternedStr;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource::Resource;
use crate::resource_list::ResourceList;

/// A persistent volume claim with its JSON.
pub type PersistentVolumeClaim = Documented<PersistentVolumeClaimView>;

crate::view! {
    /// The fields of a persistent volume claim that decisions read.
    pub struct PersistentVolumeClaimView {
        resource: Resource::namespaced("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim");
        // names the storage class of old claims, before the field does
        annotations: ["volume.beta.kubernetes.io/storage-class"];

        "spec" @ 2 {
            let access_modes: Vec<InternedStr> = "accessModes" @ 1;
            /// `spec.accessModes`, as a set.
            pub access_modes: AccessModes = AccessModes::of(&access_modes);
            "resources" @ 2 {
                /// `spec.resources.requests`, empty if it is absent.
                pub requests: ResourceList = "requests" @ 2;
            }
            /// `spec.volumeName`, empty if it is absent.
            pub volume_name: Box<str> = "volumeName" @ 3;
            /// `spec.storageClassName`, `None` if it is absent.
            pub storage_class_name: Option<InternedStr> = "storageClassName" @ 5;
            /// Volume mode of the claim: `spec.volumeMode`.
            pub volume_mode: VolumeMode = "volumeMode" @ 6;
            /// `spec.volumeAttributesClassName`, `None` if it is absent.
            pub volume_attributes_class_name: Option<InternedStr> = "volumeAttributesClassName" @ 9;
        }
        "status" @ 3 {
            /// Phase of the claim: `status.phase`.
            pub phase: ClaimPhase = "phase" @ 1;
            /// `status.capacity`, empty if it is absent.
            pub capacity: ResourceList = "capacity" @ 3;
            let unused: Unused = "conditions" @ 4;
            /// Status of the condition `Unused`, `None` if the claim does not have it.
            pub unused: Option<ConditionStatus> = unused.0;
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

/// The phases of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[non_exhaustive]
pub enum ClaimPhase {
    /// The claim is not bound yet.
    Pending,
    /// Bound to a volume.
    Bound,
    /// Its volume does not exist any more.
    Lost,
    /// Not set, or an unknown phase.
    #[default]
    #[serde(other)]
    Other,
}

impl ProtobufType for ClaimPhase {
    const KIND: Kind = Kind::Text;
}

/// The status of the condition `Unused`. The first of several conditions counts, as upstream.
#[derive(Default)]
struct Unused(Option<ConditionStatus>);

impl ProtobufType for Unused {
    const KIND: Kind = RawCondition::LIST;
}

impl<'de> Deserialize<'de> for Unused {
    fn deserialize<D: Deserializer<'de>>(conditions: D) -> Result<Self, D::Error> {
        fold(conditions, Self(None), |unused: &mut Self, condition: RawCondition<'de>| {
            if unused.0.is_none() && condition.is_of_type("Unused") {
                unused.0 = Some(if condition.is_true() {
                    ConditionStatus::True
                } else if condition.is_false() {
                    ConditionStatus::False
                } else {
                    ConditionStatus::Unknown
                });
            }
        })
    }
}

impl PersistentVolumeClaimView {
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
