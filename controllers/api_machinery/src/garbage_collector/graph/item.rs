//! What the graph knows of one object when it is processed.

use std::collections::BTreeSet;
use std::time::Duration;

use kcm_framework::api::{OwnerReference, Uid};

use super::Graph;
use super::identity::Identity;
use super::node::{Node, State, orphans_dependents};

/// The snapshot of an object that is processed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// The object, as an informer has it or as a dependent names it.
    pub(crate) identity: Identity,
    /// Whether no informer has it.
    pub(crate) is_virtual: bool,
    /// Its owner references.
    pub(crate) owners: Box<[OwnerReference]>,
    /// Whether it has any dependent.
    pub(crate) has_dependents: bool,
    /// Whether a dependent itself waits until it has no blocking dependents.
    pub(crate) has_waiting_dependent: bool,
    /// What there is to do.
    pub(crate) task: Task,
}

/// What there is to do about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// Nothing: it is terminating, or all its owners are there.
    None,
    /// It waits until it has no blocking dependents: process these, which do not themselves wait. When none is left, its
    /// finalizer is removed.
    Wait {
        /// Whether any dependent blocks it.
        is_blocked: bool,
        /// The blocking dependents to process.
        process: Vec<Uid>,
    },
    /// It waits for itself, through dependents that all wait too: its references must not block their owners any more.
    BreakCycle,
    /// Look it and its owners up: one may be absent.
    LookUp,
}

impl Graph {
    /// The snapshot of the object with that uid; absent if neither an informer nor a dependent has it.
    pub(crate) fn item(&self, uid: &Uid) -> Option<Item> {
        let node = self.nodes.get(uid)?;
        let waiting = |uid: &Uid| self.nodes.get(uid).is_some_and(Node::waits_for_dependents);
        Some(Item {
            identity: node.identity(),
            is_virtual: node.is_virtual(),
            owners: node.owners().into(),
            has_dependents: !node.dependents.is_empty(),
            has_waiting_dependent: node.dependents.iter().any(waiting),
            task: self.task(uid, node),
        })
    }

    fn task(&self, uid: &Uid, node: &Node) -> Task {
        let Some(meta) = node.meta() else { return if node.is_absent() { Task::None } else { Task::LookUp } };
        if node.waits_for_dependents() {
            let blocking = node.dependents.iter().filter_map(|uid| Some((uid, self.nodes.get(uid)?)));
            let blocking: Vec<_> = blocking.filter(|(_, dependent)| dependent.blocks(uid)).collect();
            let process = blocking.iter().filter(|(_, dependent)| !dependent.waits_for_dependents());
            let process: Vec<Uid> = process.map(|(uid, _)| (*uid).clone()).collect();
            if process.is_empty() && self.waits_for_itself(uid) {
                return Task::BreakCycle;
            }
            return Task::Wait { is_blocked: !blocking.is_empty(), process };
        }
        if meta.is_terminating() || meta.owner_references.iter().all(|reference| self.is_solid(reference, node)) {
            return Task::None;
        }
        Task::LookUp
    }

    /// Whether an object is among the objects that it waits for: its blocking dependents that wait too, and theirs.
    fn waits_for_itself(&self, uid: &Uid) -> bool {
        let mut seen = BTreeSet::new();
        let mut next = vec![uid];
        while let Some(owner) = next.pop() {
            for dependent in self.nodes.get(owner).into_iter().flat_map(|node| node.dependents.iter()) {
                let Some(node) = self.nodes.get(dependent) else { continue };
                if !node.waits_for_dependents() || !node.blocks(owner) {
                    continue;
                }
                if dependent == uid {
                    return true;
                }
                if seen.insert(dependent) {
                    next.push(dependent);
                }
            }
        }
        false
    }

    /// Whether an informer has the owner, under the name of the reference, and it does not wait for its dependents.
    fn is_solid(&self, reference: &OwnerReference, dependent: &Node) -> bool {
        let Some(owner) = self.nodes.get(&reference.uid) else { return false };
        let Some(dependent) = dependent.meta() else { return false };
        let naming = owner.identity().named_by(dependent);
        !owner.is_virtual() && !owner.waits_for_dependents() && naming.rightly && !naming.wrongly
    }

    /// The dependents of an object with their identities, sorted.
    pub(crate) fn dependents(&self, uid: &Uid) -> Vec<Identity> {
        let uids = self.nodes.get(uid).into_iter().flat_map(|node| node.dependents.iter());
        let mut dependents: Vec<Identity> = uids.filter_map(|uid| self.nodes.get(uid)).map(Node::identity).collect();
        dependents.sort();
        dependents
    }

    /// Whether no object has the identity that a reference of an object in that namespace gives its owner, and none that is
    /// cluster-scoped has it.
    pub(crate) fn is_absent(&self, named: &Identity) -> bool {
        self.absent.contains(&named.clone().cluster_scoped()) || self.absent.contains(named)
    }

    /// Remembers that no object has this identity, whose namespace is absent where its kind is cluster-scoped.
    pub(crate) fn remember_absent(&mut self, absent: Identity) {
        self.absent.add(absent);
    }

    /// The object with that uid, if its dependents are to be orphaned.
    pub(crate) fn orphaning(&self, uid: &Uid) -> Option<Identity> {
        let node = self.nodes.get(uid)?;
        node.meta().is_some_and(orphans_dependents).then(|| node.identity())
    }

    /// Counts a look-up that found an object which no informer has, and returns the time until the next; absent if an
    /// informer has it by now.
    pub(crate) fn next_lookup(&mut self, uid: &Uid) -> Option<Duration> {
        match &mut self.nodes.get_mut(uid)?.state {
            State::Observed { .. } | State::Virtual { is_absent: true, .. } => None,
            State::Virtual { lookups, .. } => {
                let delay = back_off(*lookups);
                *lookups = lookups.saturating_add(1);
                Some(delay)
            }
        }
    }
}

/// 5 ms doubling to 1000 s, as the back-off of queues.
fn back_off(lookups: u32) -> Duration {
    const LONGEST: u64 = 1_000_000;
    Duration::from_millis(5_u64.checked_shl(lookups.min(32)).unwrap_or(LONGEST).min(LONGEST))
}
