//! The volume behind the claim that a pod names.

use kcm_framework::api::views::{ClaimPhase, PersistentVolume, PersistentVolumeClaim};
use kcm_framework::api::{ObjectKey, Uid};

use super::volume::{self, Attachable};
use crate::shared::translation::TranslationError;

/// Reason why the volume of a claim is not attached. A change of the claim or of the volume ends it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum NotAttached {
    /// The claim of an ephemeral volume belongs to another object.
    #[error("PVC {claim} was not created for pod {pod} (pod is not owner)")]
    NotOwner { claim: ObjectKey, pod: ObjectKey },
    #[error("PVC {claim} does not exist")]
    NoClaim { claim: ObjectKey },
    #[error("persistent volume {volume:?} does not exist")]
    NoVolume { volume: String },
    #[error("PVC {claim} is not bound")]
    NotBound { claim: ObjectKey },
    /// The volume is bound to another claim, or to an earlier claim of the same name.
    #[error("persistent volume {volume:?} belongs to another claim than {claim}")]
    OtherClaim { volume: String, claim: ObjectKey },
    #[error("no plugin attaches persistent volume {volume:?}")]
    NoPlugin { volume: String },
    #[error("failed to translate in-tree pv to CSI")]
    Translation(#[from] TranslationError),
}

/// A pod that names a claim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) uid: &'a Uid,
}

/// Returns the name of the volume that a claim is bound to.
///
/// `owner` is the pod, if the volume of the pod is ephemeral. Then the claim must belong to the pod.
pub(super) fn volume_name<'a>(
    claim: &'a PersistentVolumeClaim,
    owner: Option<Owner<'_>>,
) -> Result<&'a str, NotAttached> {
    let key = || claim.metadata.key.clone();
    if let Some(owner) = owner.filter(|owner| !claim.metadata.is_controlled_by(owner.uid)) {
        return Err(NotAttached::NotOwner { claim: key(), pod: owner.key.clone() });
    }
    if claim.phase != ClaimPhase::Bound || claim.volume_name.is_empty() {
        return Err(NotAttached::NotBound { claim: key() });
    }
    Ok(&claim.volume_name)
}

/// Returns the volume to attach for a claim that is bound to `volume`.
pub(super) fn attachable(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<Attachable, NotAttached> {
    let name = || volume.metadata.key.name().to_owned();
    if volume.claim.as_ref().is_none_or(|reference| reference.uid != claim.metadata.uid) {
        return Err(NotAttached::OtherClaim { volume: name(), claim: claim.metadata.key.clone() });
    }
    volume::persistent(volume)?.ok_or_else(|| NotAttached::NoPlugin { volume: name() })
}
