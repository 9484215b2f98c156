//! Event mapping: the claims and the volumes that a change enqueues.

use std::sync::Arc;

use kcm_framework::api::views::{ClaimPhase, PersistentVolume, PersistentVolumeClaim, Pod, PodVolumes, VolumePhase};
use kcm_framework::api::{Meta, ObjectKey, PartReader};
use kcm_framework::informers::Change;

use super::recycler::volume_of;
use super::view::StorageClass;
use super::vocabulary::{claim_key, class_of_volume, volume_key};
use super::world::{Registries, claims_of};

/// Returns `true` if a resync shows the object again.
fn is_resync(old: &Meta, new: &Meta) -> bool {
    old.resource_version == new.resource_version
}

/// A change of a claim enqueues it. The sync period enqueues claims that are not bound.
pub(super) fn key_for_claim(change: &Change<PersistentVolumeClaim>) -> Option<ObjectKey> {
    match change {
        Change::Updated { old, new } if is_resync(&old.metadata, &new.metadata) => {
            (new.phase != ClaimPhase::Bound).then(|| change.key().clone())
        }
        Change::Added(_) | Change::Updated { .. } | Change::Deleted { .. } => Some(change.key().clone()),
        Change::Undecodable { .. } => None,
    }
}

/// A change of a volume enqueues it. The sync period enqueues volumes that are neither bound nor available.
pub(super) fn key_for_volume(change: &Change<PersistentVolume>) -> Option<ObjectKey> {
    match change {
        Change::Updated { old, new } if is_resync(&old.metadata, &new.metadata) => {
            let is_settled = matches!(new.phase, VolumePhase::Bound | VolumePhase::Available);
            (!is_settled).then(|| change.key().clone())
        }
        Change::Added(_) | Change::Updated { .. } | Change::Deleted { .. } => Some(change.key().clone()),
        Change::Undecodable { .. } => None,
    }
}

/// A change of a volume enqueues the claims that it references, the claims that name it, and if it has become available,
/// the first claims that wait for its class.
pub(super) fn claims_for_volume(
    change: &Change<PersistentVolume>,
    registries: &Registries,
    naming: impl Fn(&str) -> Vec<Arc<PersistentVolumeClaim>>,
) -> Vec<ObjectKey> {
    let (old, volume) = match change {
        Change::Updated { old, new } if is_resync(&old.metadata, &new.metadata) => return Vec::new(),
        Change::Updated { old, new } => (Some(old), new),
        Change::Added(volume) | Change::Deleted { last: volume, .. } => (None, volume),
        Change::Undecodable { .. } => {
            registries.available.lock().note(change);
            return Vec::new();
        }
    };
    registries.available.lock().note(change);
    let mut keys: Vec<ObjectKey> = old
        .into_iter()
        .chain([volume])
        .filter_map(|volume| volume.claim.as_ref().map(claim_key))
        .chain(naming(volume.metadata.key.name()).iter().map(|claim| claim.metadata.key.clone()))
        .collect();
    let is_free = |volume: &PersistentVolume| volume.phase == VolumePhase::Available && volume.claim.is_none();
    let has_become_free =
        is_free(volume) && !old.is_some_and(|old| is_free(old)) && !matches!(change, Change::Deleted { .. });
    if has_become_free {
        keys.extend(registries.waiting.lock().wake(&class_of_volume(volume)));
    }
    keys.sort();
    keys.dedup();
    keys
}

/// A change of a class enqueues the claims that wait for it, and if it is a default class, the claims without a class.
pub(super) fn claims_for_class(change: &Change<StorageClass>, registries: &Registries) -> Vec<ObjectKey> {
    let class = match change {
        Change::Updated { old, new } if is_resync(&old.metadata, &new.metadata) => return Vec::new(),
        Change::Added(class) | Change::Updated { new: class, .. } => class,
        Change::Deleted { .. } | Change::Undecodable { .. } => return Vec::new(),
    };
    let waiting = registries.waiting.lock();
    let mut keys = waiting.of_class(class.metadata.key.name());
    if class.is_default() {
        keys.extend(waiting.of_class(""));
    }
    keys
}

/// A Pod enqueues the claims of its volumes that wait, when it is added, scheduled or finished.
pub(super) fn claims_for_pod(
    change: &Change<Pod>,
    volumes: PartReader<PodVolumes>,
    registries: &Registries,
) -> Vec<ObjectKey> {
    let pod = match change {
        Change::Updated { old, new } => {
            let differs = old.node_name != new.node_name
                || old.phase != new.phase
                || old.metadata.is_terminating() != new.metadata.is_terminating();
            if !differs {
                return Vec::new();
            }
            new
        }
        Change::Added(pod) | Change::Deleted { last: pod, .. } => pod,
        Change::Undecodable { .. } => return Vec::new(),
    };
    let mut keys = claims_of(pod, volumes);
    if !keys.is_empty() {
        let waiting = registries.waiting.lock();
        keys.retain(|claim| waiting.contains(claim));
    }
    keys
}

/// A claim enqueues the volumes that reference it and the volume that it named, when it is deleted or names another volume.
pub(super) fn volumes_for_claim(
    change: &Change<PersistentVolumeClaim>,
    referencing: impl Fn(&ObjectKey) -> Vec<Arc<PersistentVolume>>,
) -> Vec<ObjectKey> {
    let old = match change {
        Change::Updated { old, new } if old.volume_name == new.volume_name => return Vec::new(),
        Change::Updated { old, .. } => old,
        Change::Deleted { last, .. } => last,
        Change::Added(_) | Change::Undecodable { .. } => return Vec::new(),
    };
    let mut keys: Vec<ObjectKey> = referencing(change.key()).iter().map(|volume| volume.metadata.key.clone()).collect();
    if !old.volume_name.is_empty() {
        keys.push(volume_key(&old.volume_name));
    }
    keys.sort();
    keys.dedup();
    keys
}

/// A Pod that empties a volume enqueues the volume when its phase changes and when it is deleted.
pub(super) fn volume_for_pod(change: &Change<Pod>) -> Option<ObjectKey> {
    let volume = volume_of(change.key().name())?;
    let is_enqueued = match change {
        Change::Updated { old, new } => old.phase != new.phase,
        Change::Added(_) | Change::Deleted { .. } => true,
        Change::Undecodable { .. } => false,
    };
    is_enqueued.then(|| volume_key(volume))
}
