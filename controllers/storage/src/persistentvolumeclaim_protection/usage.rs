//! The use of claims by Pods. Pure.

use kcm_framework::api::views::{PersistentVolumeClaim, Pod, PodDeletion, PodVolume, PodVolumes};
use kcm_framework::api::{Meta, ObjectKey, PartReader};

/// The fields of a Pod that decide which claims it uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PodUse<'a> {
    pub(super) metadata: &'a Meta,
    pub(super) volumes: &'a [PodVolume],
    /// `true` if the Pod is assigned to a Node.
    pub(super) is_assigned: bool,
    /// `true` if the Pod has finished, or is terminating and none of its containers runs.
    pub(super) is_terminated: bool,
    /// `true` if the kubelet has finished with the Pod, or the Pod was deleted by force.
    pub(super) is_shut_down: bool,
}

/// Reads the use of claims from Pods of the cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct PodReader {
    pub(super) volumes: PartReader<PodVolumes>,
    pub(super) deletions: PartReader<PodDeletion>,
}

impl PodReader {
    pub(super) fn use_of(self, pod: &Pod) -> PodUse<'_> {
        PodUse::new(pod, self.volumes.of(pod), self.deletions.of(pod))
    }
}

impl<'a> PodUse<'a> {
    pub(super) fn new(pod: &'a Pod, volumes: &'a PodVolumes, deletion: &PodDeletion) -> Self {
        Self {
            metadata: &pod.metadata,
            volumes: &volumes.volumes,
            is_assigned: pod.node_name.as_deref().is_some_and(|node| !node.is_empty()),
            is_terminated: pod.is_terminated(deletion),
            is_shut_down: deletion.is_shut_down,
        }
    }
}

/// Returns the keys of the claims that a Pod names.
pub(super) fn claims_of(pod: PodUse<'_>) -> Vec<ObjectKey> {
    let namespace = pod.metadata.key.namespace().unwrap_or_default().to_owned();
    pod.volumes.iter().map(|volume| ObjectKey::namespaced(namespace.clone(), claim_name(pod, volume))).collect()
}

/// Returns `true` if the Pod keeps a terminating claim.
///
/// Only Pods on Nodes do: a kubelet does not start a Pod whose claim is terminating. A finished Pod does, because its
/// volumes may still be mounted. A Pod that was shut down does not keep its ephemeral claims, so that a finalizer of the
/// Pod that waits for the claim ends.
///
/// # Upstream
/// `podUsesPVCForDeletion` in `pvc_protection_controller.go`.
pub(super) fn keeps(pod: PodUse<'_>, claim: &PersistentVolumeClaim) -> bool {
    pod.is_assigned && pod.volumes.iter().any(|volume| refers(pod, volume, claim, !pod.is_shut_down))
}

/// Returns `true` if the claim is in use because of the Pod, which may wait for a Node and must not have finished.
///
/// # Upstream
/// `podUsesPVCForUnusedSince` in `pvc_protection_controller.go`.
pub(super) fn occupies(pod: PodUse<'_>, claim: &PersistentVolumeClaim) -> bool {
    !pod.is_terminated && pod.volumes.iter().any(|volume| refers(pod, volume, claim, true))
}

fn refers(pod: PodUse<'_>, volume: &PodVolume, claim: &PersistentVolumeClaim, counts_ephemeral: bool) -> bool {
    let is_named = claim_name(pod, volume) == claim.metadata.key.name();
    if volume.claim_name.is_some() {
        return is_named;
    }
    let is_own = || claim.metadata.controller().is_some_and(|owner| owner.uid == pod.metadata.uid);
    counts_ephemeral && volume.is_ephemeral && is_named && is_own()
}

fn claim_name(pod: PodUse<'_>, volume: &PodVolume) -> String {
    match &volume.claim_name {
        Some(name) => (**name).to_owned(),
        None => format!("{}-{}", pod.metadata.key.name(), volume.name),
    }
}
