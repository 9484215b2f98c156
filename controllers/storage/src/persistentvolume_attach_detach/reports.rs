//! Changes of reports that are gathered, so that one patch of a node covers many volumes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parking_lot::Mutex;
use tokio::time::Instant;

/// A change of `status.volumesAttached` of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Report,
    Withdraw,
}

/// A change of the entry of a volume, and its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pending {
    change: Change,
    /// `true` if a patch with the change was sent and the cache may not show it.
    is_sent: bool,
}

#[derive(Debug, Default)]
struct OfNode {
    pending: BTreeMap<Box<str>, Vec<Pending>>,
    patched: Option<Instant>,
}

#[derive(Debug, Default)]
struct Nodes {
    by_name: HashMap<Box<str>, OfNode>,
    /// Nodes with pending changes of a volume.
    by_volume: HashMap<Box<str>, BTreeSet<Box<str>>>,
}

impl Nodes {
    /// Removes the changes of a volume that are not to be kept. Returns `true` if there were any.
    fn retain(&mut self, node: &str, volume: &str, keeps: impl Fn(&Pending) -> bool) -> bool {
        let Some(of_node) = self.by_name.get_mut(node) else { return false };
        let Some(all) = of_node.pending.get_mut(volume) else { return false };
        let before = all.len();
        all.retain(keeps);
        let is_changed = all.len() < before;
        if all.is_empty() {
            of_node.pending.remove(volume);
            self.no_longer(node, volume);
        }
        is_changed
    }

    /// Notes that no change of the volume is pending on the node.
    fn no_longer(&mut self, node: &str, volume: &str) {
        if let Some(nodes) = self.by_volume.get_mut(volume) {
            nodes.remove(node);
            if nodes.is_empty() {
                self.by_volume.remove(volume);
            }
        }
    }
}

/// The pending changes of all nodes.
///
/// A change is requested by the key of its volume and sent by the key of its node. That key is reconciled again when the
/// cache shows the patch, and only then does the change end.
#[derive(Debug, Default)]
pub(super) struct Reports(Mutex<Nodes>);

impl Reports {
    /// Requests a change. Returns `true` if the node needs a patch for it.
    pub(super) fn request(&self, node: &str, volume: &str, change: Change) -> bool {
        let mut nodes = self.0.lock();
        let pending = nodes.by_name.entry(node.into()).or_default().pending.entry(volume.into()).or_default();
        if pending.last().is_some_and(|last| last.change == change) {
            return false;
        }
        pending.retain(|earlier| earlier.is_sent);
        // A request that the last patch fulfils needs no other patch.
        let is_new = pending.last().is_none_or(|sent| sent.change != change);
        if is_new {
            pending.push(Pending { change, is_sent: false });
        }
        nodes.by_volume.entry(volume.into()).or_default().insert(node.into());
        is_new
    }

    /// Cancels the requests of a volume that were not sent, apart from nodes that are `changing`.
    pub(super) fn cancel(&self, volume: &str, changing: &BTreeSet<String>) {
        let mut nodes = self.0.lock();
        let others = nodes.by_volume.get(volume).into_iter().flatten();
        let others: Vec<_> = others.filter(|node| !changing.contains(&***node)).cloned().collect();
        for node in others {
            nodes.retain(&node, volume, |pending| pending.is_sent);
        }
    }

    /// Cancels the report of a volume that was not sent, so that no later patch reports a volume that is being detached.
    pub(super) fn cancel_report(&self, node: &str, volume: &str) {
        self.0.lock().retain(node, volume, |pending| pending.is_sent || pending.change != Change::Report);
    }

    /// Returns `true` if a report of the volume may be under way to the API server.
    pub(super) fn may_be_reported(&self, node: &str, volume: &str) -> bool {
        let nodes = self.0.lock();
        let pending = nodes.by_name.get(node).and_then(|of_node| of_node.pending.get(volume));
        pending.is_some_and(|all| all.iter().any(|pending| pending.is_sent && pending.change == Change::Report))
    }

    /// Returns `true` if a change of the node is pending.
    pub(super) fn has(&self, node: &str) -> bool {
        self.0.lock().by_name.get(node).is_some_and(|of_node| !of_node.pending.is_empty())
    }

    /// Returns the time of the last patch of the node.
    pub(super) fn patched(&self, node: &str) -> Option<Instant> {
        self.0.lock().by_name.get(node)?.patched
    }

    /// Ends the changes that were sent, because the cache shows them. Returns their volumes.
    pub(super) fn shown(&self, node: &str) -> Vec<Box<str>> {
        let mut nodes = self.0.lock();
        let Some(of_node) = nodes.by_name.get(node) else { return Vec::new() };
        let mut volumes: Vec<_> = of_node.pending.keys().cloned().collect();
        volumes.retain(|volume| nodes.retain(node, volume, |pending| !pending.is_sent));
        volumes
    }

    /// Takes the requested changes as sent.
    pub(super) fn send(&self, node: &str) -> BTreeMap<Box<str>, Change> {
        let mut nodes = self.0.lock();
        let Some(of_node) = nodes.by_name.get_mut(node) else { return BTreeMap::new() };
        let mut taken = BTreeMap::new();
        for (volume, all) in &mut of_node.pending {
            for pending in all.iter_mut().filter(|pending| !pending.is_sent) {
                pending.is_sent = true;
                taken.insert(volume.clone(), pending.change);
            }
        }
        taken
    }

    /// Requests the changes of a failed patch again, unless their volume has a later request.
    pub(super) fn failed(&self, node: &str, now: Instant) {
        let mut nodes = self.0.lock();
        let Some(of_node) = nodes.by_name.get_mut(node) else { return };
        // It may have taken effect, so that earlier live reads do not show the report.
        of_node.patched = Some(now);
        for all in of_node.pending.values_mut() {
            // The response may have been lost, so that a report may be under way until the key runs again.
            let is_last_sent = all.last().is_some_and(|pending| pending.is_sent);
            if let Some(last) = all.last().copied().filter(|_| is_last_sent) {
                all.push(Pending { is_sent: false, ..last });
            }
        }
    }

    /// Notes the end of a patch.
    pub(super) fn set_patched(&self, node: &str, now: Instant) {
        self.0.lock().by_name.entry(node.into()).or_default().patched = Some(now);
    }

    /// Forgets a node that does not exist any more. Returns the volumes with pending changes.
    pub(super) fn forget(&self, node: &str) -> Vec<Box<str>> {
        let mut nodes = self.0.lock();
        let of_node = nodes.by_name.remove(node);
        let volumes: Vec<_> = of_node.map(|of_node| of_node.pending.into_keys().collect()).unwrap_or_default();
        for volume in &volumes {
            nodes.no_longer(node, volume);
        }
        volumes
    }
}
