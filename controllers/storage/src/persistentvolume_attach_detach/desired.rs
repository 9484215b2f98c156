//! The volumes that pods need on their nodes.

use std::collections::{BTreeMap, BTreeSet};

use kcm_framework::api::{ObjectKey, Uid};

use super::events::PodName;
use super::volume::Attachable;

/// Unique name of a volume, and name of a node.
type Pair = (String, String);

/// The desired state: which node needs which volume, and for which pods.
///
/// # Upstream
/// `DesiredStateOfWorld`. Upstream finds the volumes of a deleted pod through its claims, and misses volumes whose claim
/// was deleted first. Here an index by uid of the pod has them.
#[derive(Debug, Default)]
pub(super) struct Desired {
    pairs: BTreeMap<Pair, Wanted>,
    by_pod: BTreeMap<Uid, BTreeSet<Pair>>,
    /// Name of a node, and unique name of a volume that it needs.
    by_node: BTreeSet<(String, String)>,
    /// The pod of each name that needs volumes.
    uids: BTreeMap<ObjectKey, Uid>,
}

/// The need for a volume on a node.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// The volume as its first pod found it. It stays, because an attachment does not change.
    pub(super) volume: Attachable,
    /// The pods that need it.
    pub(super) pods: BTreeMap<Uid, PodName>,
}

impl Desired {
    /// Adds the volumes that a pod needs. Returns the unique names of the volumes that the pod did not need before.
    pub(super) fn add(&mut self, uid: &Uid, pod: &PodName, node: &str, volumes: Vec<Attachable>) -> BTreeSet<String> {
        let mut added = BTreeSet::new();
        for volume in volumes {
            let name = volume.unique_name.clone();
            let pair = (name.clone(), node.to_owned());
            let wanted = self.pairs.entry(pair.clone()).or_insert_with(|| Wanted { volume, pods: BTreeMap::new() });
            wanted.pods.entry(uid.clone()).or_insert_with(|| pod.clone());
            self.by_node.insert((node.to_owned(), name.clone()));
            self.uids.insert(pod.key(), uid.clone());
            if self.by_pod.entry(uid.clone()).or_default().insert(pair) {
                added.insert(name);
            }
        }
        added
    }

    /// Removes a pod that is deleted or terminated. Returns the unique names of the volumes that it needed.
    pub(super) fn remove(&mut self, uid: &Uid) -> BTreeSet<String> {
        self.retain(uid, |_| false)
    }

    /// Removes the volumes of a pod that are not to be kept. Returns their unique names.
    pub(super) fn retain(&mut self, uid: &Uid, keeps: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let Some(pairs) = self.by_pod.remove(uid) else { return BTreeSet::new() };
        let (kept, removed): (BTreeSet<Pair>, BTreeSet<Pair>) = pairs.into_iter().partition(|(name, _)| keeps(name));
        for pair in &removed {
            let Some(wanted) = self.pairs.get_mut(pair) else { continue };
            let pod = wanted.pods.remove(uid);
            if wanted.pods.is_empty() {
                self.pairs.remove(pair);
                self.by_node.remove(&(pair.1.clone(), pair.0.clone()));
            }
            if let Some(key) = pod.filter(|_| kept.is_empty()).map(|pod| pod.key()) {
                self.uids.remove(&key);
            }
        }
        if !kept.is_empty() {
            self.by_pod.insert(uid.clone(), kept);
        }
        removed.into_iter().map(|(volume, _)| volume).collect()
    }

    /// Returns the uid of the pod of this name that needs volumes.
    pub(super) fn uid(&self, pod: &ObjectKey) -> Option<Uid> {
        self.uids.get(pod).cloned()
    }

    /// Returns the unique names of all volumes that pods need.
    pub(super) fn volumes(&self) -> BTreeSet<String> {
        self.pairs.keys().map(|(volume, _)| volume.clone()).collect()
    }

    /// Calls `each` with the unique name of the volume of each need.
    pub(super) fn for_each(&self, mut each: impl FnMut(&str)) {
        self.pairs.keys().for_each(|(volume, _)| each(volume));
    }

    /// Returns the unique names of the volumes that pods on a node need.
    pub(super) fn on_node(&self, node: &str) -> Vec<String> {
        let first = (node.to_owned(), String::new());
        let of_node = self.by_node.range(first..).take_while(|(name, _)| name == node);
        of_node.map(|(_, volume)| volume.clone()).collect()
    }

    /// Returns the need for a volume, by node.
    pub(super) fn wanted(&self, volume: &str) -> BTreeMap<String, Wanted> {
        let first = (volume.to_owned(), String::new());
        let of_volume = self.pairs.range(first..).take_while(|((name, _), _)| name == volume);
        of_volume.map(|((_, node), wanted)| (node.clone(), wanted.clone())).collect()
    }
}

/// Returns the pods that need a volume on nodes other than `node`.
pub(super) fn users_elsewhere(wanted: &BTreeMap<String, Wanted>, node: &str) -> Vec<PodName> {
    let elsewhere = wanted.iter().filter(|(other, _)| *other != node);
    elsewhere.flat_map(|(_, wanted)| wanted.pods.values().cloned()).collect()
}
