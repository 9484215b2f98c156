//! Event mapping: the Pods that a change enqueues.

use kcm_framework::api::views::{ClaimPhase, MountSource, PersistentVolume, PersistentVolumeClaim, Pod, PodSelinux};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::Change;

use crate::shared::csi_driver::CsiDriver;

/// A Pod with volumes is enqueued when it is added, deleted or finished, and when its mounts change, as by an ephemeral
/// container.
pub(super) fn key_for_pod(change: &Change<Pod>, selinux: PartReader<PodSelinux>) -> Option<ObjectKey> {
    let has_mounts = |pod: &Pod| !selinux.of(pod).mounts.is_empty();
    let is_enqueued = match change {
        Change::Added(pod) => has_mounts(pod) && !pod.is_finished(),
        Change::Updated { old, new } => {
            let is_other = old.metadata.uid != new.metadata.uid || selinux.of(old) != selinux.of(new);
            let has_finished = new.is_finished() && !old.is_finished();
            (is_other || has_finished) && (has_mounts(old) || has_mounts(new))
        }
        Change::Deleted { last, .. } => has_mounts(last),
        Change::Undecodable { .. } => false,
    };
    is_enqueued.then(|| change.key().clone())
}

/// A claim enqueues its Pods when it becomes bound, and when another claim or volume takes its place.
pub(super) fn claim_for_claim(change: &Change<PersistentVolumeClaim>) -> Option<ObjectKey> {
    let is_bound = |claim: &PersistentVolumeClaim| claim.phase == ClaimPhase::Bound && !claim.volume_name.is_empty();
    let is_enqueued = match change {
        Change::Added(claim) => is_bound(claim),
        Change::Updated { old, new } => {
            let is_other = old.metadata.uid != new.metadata.uid || old.volume_name != new.volume_name;
            is_bound(new) && (is_other || !is_bound(old))
        }
        Change::Deleted { .. } | Change::Undecodable { .. } => false,
    };
    is_enqueued.then(|| change.key().clone())
}

/// A volume enqueues the Pods of the claim that it becomes bound to.
pub(super) fn claim_for_volume(change: &Change<PersistentVolume>) -> Option<ObjectKey> {
    let (old, new) = match change {
        Change::Updated { old, new } if old.metadata.uid == new.metadata.uid => (old.claim.as_ref(), new),
        Change::Added(new) | Change::Updated { new, .. } => (None, new),
        Change::Deleted { .. } | Change::Undecodable { .. } => return None,
    };
    let claim = new.claim.as_ref().filter(|claim| !claim.uid.is_unset())?;
    let is_new = old.is_none_or(|old| old.uid != claim.uid);
    is_new.then(|| ObjectKey::namespaced(claim.namespace.to_string(), claim.name.to_string()))
}

/// Returns the name of a driver whose change may decide how its volumes are mounted.
pub(super) fn driver_for_driver(change: &Change<CsiDriver>) -> Option<&str> {
    let is_enqueued = match change {
        Change::Added(_) => true,
        Change::Updated { old, new } => old.mounts_with_label != new.mounts_with_label,
        Change::Deleted { last, .. } => last.mounts_with_label,
        Change::Undecodable { .. } => false,
    };
    is_enqueued.then(|| change.key().name())
}

/// Returns the keys of the claims of the volumes that a Pod mounts.
pub(super) fn claims_of(pod: &Pod, selinux: &PodSelinux) -> Vec<ObjectKey> {
    selinux.mounts.iter().filter_map(|mount| claim_of(&pod.metadata.key, &mount.volume, &mount.source)).collect()
}

/// Returns the key of the claim of a volume, if it has one.
pub(super) fn claim_of(pod: &ObjectKey, volume: &str, source: &MountSource) -> Option<ObjectKey> {
    let name = match source {
        MountSource::Claim(name) => name.to_string(),
        MountSource::Ephemeral => format!("{}-{volume}", pod.name()),
        MountSource::Inline | MountSource::Other => return None,
    };
    Some(ObjectKey::namespaced(pod.namespace().unwrap_or_default().to_owned(), name))
}
