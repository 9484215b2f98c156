//! The choice of a volume for a claim. Pure.

use std::sync::Arc;

use kcm_framework::api::views::{
    AccessModes, PersistentVolume, PersistentVolumeClaim, PersistentVolumeView, VolumePhase,
};
use kcm_framework::api::{InvalidSelector, LabelSelector, ResourceQuantity, Selector};

use super::vocabulary::{class_of_claim, class_of_volume, is_bound_to};

/// The volumes that a claim may be bound to.
pub(super) trait Volumes {
    /// The volumes that reference a claim of that name, in the order of their names.
    fn referencing(&self, claim: &PersistentVolumeClaim) -> Vec<Arc<PersistentVolume>>;

    /// The first available volume with these access modes that `fits`, by capacity and then by name, beginning with the
    /// capacity that the claim requests.
    fn available(
        &self,
        modes: AccessModes,
        claim: &PersistentVolumeClaim,
        fits: &dyn Fn(&PersistentVolume) -> bool,
    ) -> Option<Arc<PersistentVolume>>;
}

/// Returns the storage that the claim requests.
pub(super) fn requested(claim: &PersistentVolumeClaim) -> ResourceQuantity {
    claim.requests.get("storage").unwrap_or_default()
}

/// Returns the storage that the volume has.
pub(super) fn capacity(volume: &PersistentVolumeView) -> ResourceQuantity {
    volume.capacity.get("storage").unwrap_or_default()
}

/// Returns the selector of a claim for the labels of volumes. A claim without a selector selects every volume.
pub(super) fn selector_of(claim: &PersistentVolumeClaim) -> Result<Selector, InvalidSelector> {
    let selector = claim.raw(&["spec", "selector"]).filter(|raw| raw.get() != "null");
    match selector.and_then(|raw| serde_json::from_str::<LabelSelector>(raw.get()).ok()) {
        Some(selector) => Selector::try_from(&selector),
        None => Ok(Selector::everything()),
    }
}

/// Returns the best volume for a claim. A claim with delayed binding takes only a volume that is reserved for it.
///
/// Volumes are tried by their sets of access modes, from the fewest modes up. In a set, a volume that references the claim
/// goes before the smallest available one.
///
/// # Upstream
/// `findBestMatchForClaim` of `pkg/controller/volume/persistentvolume/index.go` and `FindMatchingVolume` of
/// `component-helpers/storage/volume`
pub(super) fn best_match(
    claim: &PersistentVolumeClaim,
    is_delayed: bool,
    volumes: &impl Volumes,
) -> Result<Option<Arc<PersistentVolume>>, InvalidSelector> {
    let selector = selector_of(claim)?;
    let reserved: Vec<_> = volumes
        .referencing(claim)
        .into_iter()
        .filter(|volume| is_bound_to(volume, claim) && satisfies(volume, claim))
        .collect();
    let class = class_of_claim(claim);
    let fits = |volume: &PersistentVolume| {
        volume.claim.is_none()
            && volume.phase == VolumePhase::Available
            && satisfies(volume, claim)
            && *class_of_volume(volume) == *class
            && selector.matches(&volume.metadata.labels)
    };
    for modes in claim.access_modes.supersets() {
        if let Some(volume) = reserved.iter().find(|volume| volume.access_modes == modes) {
            return Ok(Some(Arc::clone(volume)));
        }
        if !is_delayed && let Some(volume) = volumes.available(modes, claim, &fits) {
            return Ok(Some(volume));
        }
    }
    Ok(None)
}

/// Returns `true` if capacity, volume mode and attributes class of the volume satisfy the claim, and the volume is not
/// being deleted.
fn satisfies(volume: &PersistentVolumeView, claim: &PersistentVolumeClaim) -> bool {
    capacity(volume) >= requested(claim)
        && volume.volume_mode == claim.volume_mode
        && volume.volume_attributes_class() == attributes_class(claim)
        && !volume.metadata.is_terminating()
}

fn attributes_class(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.volume_attributes_class_name.as_deref().filter(|name| !name.is_empty())
}

/// A reason that a volume cannot be bound to the claim that names it. The message is upstream's, because an event has it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Mismatch {
    #[error("the volume is marked for deletion {0:?}")]
    Terminating(String),
    #[error("requested PV is too small")]
    TooSmall,
    #[error("storageClassName does not match")]
    Class,
    #[error("volumeAttributesClassName does not match")]
    AttributesClass,
    #[error("incompatible volumeMode")]
    VolumeMode,
    #[error("incompatible accessMode")]
    AccessModes,
}

/// Checks the volume that a claim names. Its phase and its labels do not matter.
///
/// # Upstream
/// `checkVolumeSatisfyClaim`
pub(super) fn check_named(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Result<(), Mismatch> {
    if volume.metadata.is_terminating() {
        Err(Mismatch::Terminating(volume.metadata.key.name().to_owned()))
    } else if capacity(volume).round_up() < requested(claim).round_up() {
        Err(Mismatch::TooSmall)
    } else if *class_of_volume(volume) != *class_of_claim(claim) {
        Err(Mismatch::Class)
    } else if volume.volume_attributes_class() != attributes_class(claim) {
        Err(Mismatch::AttributesClass)
    } else if volume.volume_mode != claim.volume_mode {
        Err(Mismatch::VolumeMode)
    } else if !volume.access_modes.contains(claim.access_modes) {
        Err(Mismatch::AccessModes)
    } else {
        Ok(())
    }
}
