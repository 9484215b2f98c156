//! The plan for a Pod: the claims to create. Pure.

use kcm_framework::api::views::{PersistentVolumeClaim, Pod, PodVolume, PodVolumes};
use kcm_framework::api::{Meta, ObjectKey};

/// The claim of an ephemeral volume, as a cache or the API server shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimState {
    /// The claim does not exist.
    Absent,
    /// The Pod controls the claim.
    Own,
    /// The claim belongs to nobody, to another object, or to an earlier Pod of the same name.
    Foreign,
}

impl ClaimState {
    /// # Upstream
    /// `VolumeIsForPod` of `k8s.io/component-helpers/storage/ephemeral`.
    pub(super) fn of(claim: &PersistentVolumeClaim, pod: &Meta) -> Self {
        if claim.metadata.is_controlled_by(&pod.uid) { Self::Own } else { Self::Foreign }
    }
}

/// The ephemeral volumes of a Pod, in order.
pub(super) fn ephemeral(volumes: &PodVolumes) -> impl Iterator<Item = &PodVolume> {
    volumes.volumes.iter().filter(|volume| volume.claim_name.is_none() && volume.is_ephemeral)
}

/// The key of the claim of an ephemeral volume.
pub(super) fn claim_key(pod: &ObjectKey, volume: &str) -> ObjectKey {
    ObjectKey::namespaced(pod.namespace().unwrap_or_default().to_owned(), format!("{}-{volume}", pod.name()))
}

/// A claim that cannot become the claim of the Pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PVC {claim} was not created for pod {pod} (pod is not owner)")]
pub(super) struct NotOwner {
    claim: ObjectKey,
    pod: ObjectKey,
}

impl NotOwner {
    pub(super) fn new(claim: &ObjectKey, pod: &Pod) -> Self {
        Self { claim: claim.clone(), pod: pod.metadata.key.clone() }
    }
}
