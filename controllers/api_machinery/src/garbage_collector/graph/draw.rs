//! What the debug page shows of the graph.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kcm_framework::api::{Meta, Resource, Uid};

use super::Graph;
use super::identity::Identity;
use super::node::{Node, State};

/// A node as the debug page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drawn {
    /// The object.
    pub(crate) identity: Identity,
    /// Its owners.
    pub(crate) owners: BTreeSet<Uid>,
    /// Whether no informer has it.
    pub(crate) is_virtual: bool,
    /// Whether it is terminating.
    pub(crate) is_terminating: bool,
    /// Whether it waits until it has no blocking dependents.
    pub(crate) waits_for_dependents: bool,
}

impl Graph {
    /// All objects that have owners or dependents.
    pub(crate) fn draw(&self) -> BTreeMap<Uid, Drawn> {
        let joined = self.nodes.iter().filter(|(_, node)| !node.dependents.is_empty() || !node.owners().is_empty());
        joined.map(|(uid, node)| (uid.clone(), Drawn::of(node))).collect()
    }

    /// The objects that are joined to these, at whatever distance.
    pub(crate) fn draw_around(&self, uids: &[Uid]) -> BTreeMap<Uid, Drawn> {
        let mut drawn = BTreeMap::new();
        let mut next: Vec<Uid> = uids.to_vec();
        while let Some(uid) = next.pop() {
            let Some(node) = self.nodes.get(&uid).filter(|_| !drawn.contains_key(&uid)) else { continue };
            next.extend(node.owners().iter().map(|owner| owner.uid.clone()));
            next.extend(node.dependents.iter().cloned());
            drawn.insert(uid, Drawn::of(node));
        }
        drawn
    }

    /// The objects of that name, in the namespace or cluster-scoped, that informers have.
    pub(crate) fn find(&self, namespace: &str, name: &str) -> Vec<(Arc<Resource>, Uid)> {
        let found = self.nodes.iter().filter_map(|(uid, node)| {
            let State::Observed { resource, object } = &node.state else { return None };
            let key = &object.metadata().key;
            let is_meant = key.name() == name && key.namespace().is_none_or(|of| of == namespace);
            is_meant.then(|| (Arc::clone(resource), uid.clone()))
        });
        found.collect()
    }
}

impl Drawn {
    fn of(node: &Node) -> Self {
        Self {
            identity: node.identity(),
            owners: node.owners().iter().map(|owner| owner.uid.clone()).collect(),
            is_virtual: node.is_virtual(),
            is_terminating: node.meta().is_some_and(Meta::is_terminating),
            waits_for_dependents: node.waits_for_dependents(),
        }
    }
}
