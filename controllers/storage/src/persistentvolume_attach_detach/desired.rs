//! The volumes that pods need on their nodes.

use std::collections::{BTreeMap, BTreeSet};

use kcm_framework::api::Uid;

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
}

/// The need for a volume on a node.
#[derive(Debug)]
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
            if self.by_pod.entry(uid.clone()).or_default().insert(pair) {
                added.insert(name);
            }
        }
        added
    }

    /// Removes a pod that is deleted or terminated. Returns the unique names of the volumes that it needed.
    pub(super) fn remove(&mut self, uid: &Uid) -> BTreeSet<String> {
        let pairs = self.by_pod.remove(uid).unwrap_or_default();
        for pair in &pairs {
            if let Some(wanted) = self.pairs.get_mut(pair) {
                wanted.pods.remove(uid);
                if wanted.pods.is_empty() {
                    self.pairs.remove(pair);
                }
            }
        }
        pairs.into_iter().map(|(volume, _)| volume).collect()
    }

    /// Returns the need for a volume, by node, in the order of the nodes' names.
    pub(super) fn nodes_of<'a>(&'a self, volume: &'a str) -> impl Iterator<Item = (&'a str, &'a Wanted)> {
        let first = (volume.to_owned(), String::new());
        let of_volume = self.pairs.range(first..).take_while(move |((name, _), _)| name == volume);
        of_volume.map(|((_, node), wanted)| (node.as_str(), wanted))
    }

    /// Returns the pods that need a volume on nodes other than `node`.
    pub(super) fn users_elsewhere(&self, volume: &str, node: &str) -> Vec<PodName> {
        let elsewhere = self.nodes_of(volume).filter(|(other, _)| *other != node);
        elsewhere.flat_map(|(_, wanted)| wanted.pods.values().cloned()).collect()
    }
}
