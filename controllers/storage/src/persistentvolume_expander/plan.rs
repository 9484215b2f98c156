//! The pure decision about a claim and its volume.

use kcm_framework::api::ResourceQuantity;
use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};

use crate::shared::migration::{Migration, VolumeSource};

/// Annotation of a volume: the capacity that its claim had before the expansion, while the kubelet has not finished it.
pub(super) const PRE_RESIZE_CAPACITY: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";

const STORAGE: &str = "storage";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// The claim has what it requests.
    Nothing,
    /// The resizer of a CSI driver expands the volume, once the claim names the driver.
    Migrated(&'static Migration),
    /// An external controller expands the volume, or nobody.
    External,
    /// A flex volume of this driver: the expansion is recorded for the kubelet.
    Flex { driver: String },
}

/// Decides who expands the volume of a claim.
///
/// # Upstream
/// `expandController.syncHandler`.
pub(super) fn plan(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Plan {
    if request(claim) <= capacity(claim) && volume.annotation(PRE_RESIZE_CAPACITY).is_none() {
        return Plan::Nothing;
    }
    match VolumeSource::of(volume) {
        VolumeSource::Migrated(migration) => Plan::Migrated(migration),
        VolumeSource::Flex { driver } => Plan::Flex { driver },
        VolumeSource::Other => Plan::External,
    }
}

/// Returns `true` if the volume is bound to the claim, and to no claim that had its name before.
pub(super) fn is_bound_to(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.claim.as_ref().is_some_and(|bound| {
        Some(&*bound.namespace) == claim.metadata.key.namespace() && bound.uid == claim.metadata.uid
    })
}

/// The storage that a claim requests.
pub(super) fn request(claim: &PersistentVolumeClaim) -> ResourceQuantity {
    claim.requests.get(STORAGE).unwrap_or_default()
}

/// The storage that a claim has, as its status says.
pub(super) fn capacity(claim: &PersistentVolumeClaim) -> ResourceQuantity {
    claim.capacity.get(STORAGE).unwrap_or_default()
}

/// The storage that was allocated for an unfinished expansion of a claim.
pub(super) fn allocated(claim: &PersistentVolumeClaim) -> Option<ResourceQuantity> {
    claim.allocated_resources.get(STORAGE)
}

/// The capacity of a volume.
pub(super) fn volume_capacity(volume: &PersistentVolume) -> ResourceQuantity {
    volume.capacity.get(STORAGE).unwrap_or_default()
}
