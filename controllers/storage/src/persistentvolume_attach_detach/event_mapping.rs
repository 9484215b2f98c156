//! Event mapping: the pods, volumes and nodes that a change enqueues.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::api::views::{ClaimPhase, Node, NodeVolumes, PersistentVolume, PersistentVolumeClaim, Pod};
use kcm_framework::api::{InternedStr, ObjectKey};
use kcm_framework::informers::{Change, Informer};

use super::key::Key;
use super::state::State;
use super::view::{VolumeAttachment, needs_attachment};
use super::world::{Parts, health, unique_name, volumes_of_node};
use crate::shared::csi_driver::CsiDriver;

/// A pod with volumes is enqueued when it is added, scheduled, terminated or deleted.
pub(super) fn key_for_pod(change: &Change<Pod>, parts: Parts) -> Option<Key> {
    let pod = match change {
        Change::Added(pod) => parts.needs_volumes_on(pod).map(|_| pod)?,
        Change::Updated { old, new } => {
            let differs = parts.needs_volumes_on(old) != parts.needs_volumes_on(new);
            Some(new).filter(|_| differs)?
        }
        Change::Deleted { last, .. } => last.node_name.as_ref().map(|_| last)?,
        Change::Undecodable { .. } => return None,
    };
    parts.has_volumes(pod).then(|| Key::Pod(pod.metadata.key.clone()))
}

/// A claim that is bound enqueues its pods that run or will run.
pub(super) fn pods_for_claim(
    change: &Change<PersistentVolumeClaim>,
    parts: Parts,
    pods_of: impl Fn(&ObjectKey) -> Vec<Arc<Pod>>,
) -> Vec<Key> {
    let is_bound = |claim: &PersistentVolumeClaim| claim.phase == ClaimPhase::Bound && !claim.volume_name.is_empty();
    let claim = match change {
        Change::Added(claim) => claim,
        Change::Updated { old, new } if is_bound(old) && old.volume_name == new.volume_name => return Vec::new(),
        Change::Updated { new, .. } => new,
        Change::Deleted { .. } | Change::Undecodable { .. } => return Vec::new(),
    };
    if is_bound(claim) { keys_of_pods(pods_of(&claim.metadata.key), parts) } else { Vec::new() }
}

/// A volume enqueues itself, and the pods of its claim when it becomes theirs.
pub(super) fn keys_for_volume(
    change: &Change<PersistentVolume>,
    parts: Parts,
    pods_of: impl Fn(&ObjectKey) -> Vec<Arc<Pod>>,
) -> Vec<Key> {
    let volume = match change {
        Change::Added(volume) => volume,
        Change::Updated { old, new } => {
            let is_same = |old: &PersistentVolume, new: &PersistentVolume| {
                old.claim == new.claim && unique_name(old) == unique_name(new)
            };
            if is_same(old, new) {
                return Vec::new();
            }
            new
        }
        Change::Deleted { last, .. } => return unique_name(last).map(volume_key).into_iter().collect(),
        Change::Undecodable { .. } => return Vec::new(),
    };
    let claim = volume.claim.as_ref().map(|claim| ObjectKey::namespaced(claim.namespace.to_string(), &*claim.name));
    let mut keys = claim.map(|claim| keys_of_pods(pods_of(&claim), parts)).unwrap_or_default();
    keys.extend(unique_name(volume).map(volume_key));
    keys
}

/// An attachment enqueues its volume.
pub(super) fn volume_for_attachment(
    change: &Change<VolumeAttachment>,
    volumes: &Informer<PersistentVolume>,
    state: &State,
) -> Option<Key> {
    let attachment = change.object();
    let volume = attachment.volume_name.as_deref().and_then(|name| volumes.get(&ObjectKey::cluster_scoped(name)));
    let by_volume = volume.and_then(|volume| unique_name(&volume));
    let by_name = || state.names.volume(change.key().name());
    by_volume.or_else(by_name).map(volume_key)
}

/// A node enqueues the volumes whose entries in its status changed. If its health changed, it enqueues all volumes that it
/// has or needs.
pub(super) fn keys_for_node(change: &Change<Node>, parts: Parts, state: &State) -> Vec<Key> {
    let volumes = |node: &Node| volumes_of_node(parts.nodes.of(node));
    let name = change.key().name();
    let (names, is_health_new) = match change {
        Change::Added(node) => (volumes(node), true),
        Change::Updated { old, new } => (changed(old, new, parts), health(old) != health(new)),
        Change::Deleted { last, .. } => {
            let part = parts.nodes.of(last);
            // The key of the volume forgets the node again. Volumes of unknown plugins have no key.
            for volume in volumes(last).iter().filter(|volume| !part.in_use.contains(*volume)) {
                state.memories.note_idle(volume, name);
            }
            (volumes(last), true)
        }
        Change::Undecodable { .. } => return Vec::new(),
    };
    let mut keys: BTreeSet<Key> = names.iter().map(|name| Key::Volume((**name).into())).collect();
    if is_health_new {
        keys.extend(volumes(change.object()).iter().map(|name| Key::Volume((**name).into())));
        keys.extend(state.desired.lock().on_node(name).into_iter().map(volume_key));
    }
    if matches!(change, Change::Deleted { .. }) || state.reports.has(name) {
        keys.insert(Key::Node(name.into()));
    }
    keys.into_iter().collect()
}

/// Returns the volumes that only one of the states of a node reports, or uses.
fn changed(old: &Node, new: &Node, parts: Parts) -> BTreeSet<InternedStr> {
    let (old, new) = (parts.nodes.of(old), parts.nodes.of(new));
    if old == new {
        return BTreeSet::new();
    }
    let known = volumes_of_node(old).into_iter().chain(volumes_of_node(new));
    let entries = |volumes: &NodeVolumes, name: &str| {
        (volumes.attached.iter().any(|entry| entry.name == name), volumes.in_use.iter().any(|used| used == name))
    };
    known.filter(|name| entries(old, name) != entries(new, name)).collect()
}

/// A driver that begins or ceases to need attachments enqueues all pods with volumes.
pub(super) fn pods_for_driver(change: &Change<CsiDriver>, parts: Parts, pods: &Informer<Pod>) -> Vec<Key> {
    let differs = match change {
        Change::Added(driver) | Change::Deleted { last: driver, .. } => !needs_attachment(Some(driver)),
        Change::Updated { old, new } => needs_attachment(Some(old)) != needs_attachment(Some(new)),
        Change::Undecodable { .. } => false,
    };
    let mut keys = Vec::new();
    if differs {
        pods.for_each(|pod| keys.extend(keys_of_pods([Arc::clone(pod)], parts)));
    }
    keys
}

fn keys_of_pods(pods: impl IntoIterator<Item = Arc<Pod>>, parts: Parts) -> Vec<Key> {
    let needing = pods.into_iter().filter(|pod| parts.has_volumes(pod) && parts.needs_volumes_on(pod).is_some());
    needing.map(|pod| Key::Pod(pod.metadata.key.clone())).collect()
}

fn volume_key(name: String) -> Key {
    Key::Volume(name.into())
}
