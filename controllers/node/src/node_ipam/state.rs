//! The allocator, with the names of Nodes and the Nodes that wait. Pure.

use std::collections::{BTreeSet, HashMap};

use kcm_framework::api::{ObjectKey, Uid};

use super::allocator::{Allocator, Reservation};
use super::cidr::Cidr;

/// Everything that the loop knows of Nodes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) allocator: Allocator,
    /// The uid of the Node of each name.
    names: HashMap<ObjectKey, Uid>,
    /// The Nodes that wait for a free block.
    waiting: BTreeSet<ObjectKey>,
}

/// A Node as the cache shows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) uid: &'a Uid,
    pub(super) is_terminating: bool,
    pub(super) pod_cidrs: &'a [Box<str>],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Plan {
    /// The Node has its pod CIDRs.
    Occupied,
    /// The Node has pod CIDRs that it should not have. They stay, and are not given to others.
    Wrong(Wrong),
    /// The Node is terminating and gets no pod CIDRs.
    Terminating,
    /// Other Nodes cannot be decoded, and may have any pod CIDR.
    UnknownNodes,
    /// No block of the cluster CIDR of that position is free.
    Wait {
        index: usize,
        /// `true` if the Node has waited already.
        is_known: bool,
    },
    /// The pod CIDRs are written.
    Assign(Reservation),
}

/// A pod CIDR that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Wrong {
    #[error("the node has a pod CIDR that cannot be read")]
    Unreadable,
    #[error("the node has a pod CIDR outside of --cluster-cidr: delete and create the node to give it another")]
    Foreign,
    #[error("the node shares its pod CIDR with another node or with the services: delete and create one of the nodes")]
    Shared,
}

impl State {
    pub(super) fn new(allocator: Allocator) -> Self {
        Self { allocator, names: HashMap::new(), waiting: BTreeSet::new() }
    }

    /// Plans for a Node. `has_unknown_nodes` tells if other Nodes may have any pod CIDR.
    pub(super) fn plan(&mut self, node: Observed<'_>, has_unknown_nodes: bool) -> Plan {
        self.name(node);
        if !node.pod_cidrs.is_empty() {
            self.waiting.remove(node.key);
            return self.occupy(node.uid, node.pod_cidrs);
        }
        if node.is_terminating {
            self.waiting.remove(node.key);
            return Plan::Terminating;
        }
        if has_unknown_nodes {
            return Plan::UnknownNodes;
        }
        match self.allocator.reserve(node.uid) {
            Ok(reservation) => {
                self.waiting.remove(node.key);
                Plan::Assign(reservation)
            }
            Err(exhausted) => {
                let is_known = !self.waiting.insert(node.key.clone());
                Plan::Wait { index: exhausted.index, is_known }
            }
        }
    }

    /// A Node that was recreated under the name takes nothing over.
    fn name(&mut self, node: Observed<'_>) {
        let before = self.names.insert(node.key.clone(), node.uid.clone());
        if let Some(before) = before.filter(|before| before != node.uid) {
            self.allocator.release(&before);
        }
    }

    fn occupy(&mut self, node: &Uid, texts: &[Box<str>]) -> Plan {
        let cidrs: Vec<Cidr> = texts.iter().filter_map(|text| Cidr::parse(text)).collect();
        let is_unreadable = cidrs.len() < texts.len();
        let occupied = self.allocator.occupy(node, &cidrs);
        let wrong = [
            (is_unreadable, Wrong::Unreadable),
            (occupied.is_foreign, Wrong::Foreign),
            (occupied.is_shared, Wrong::Shared),
        ];
        wrong.into_iter().find(|(is_wrong, _)| *is_wrong).map_or(Plan::Occupied, |(_, wrong)| Plan::Wrong(wrong))
    }

    /// Forgets a Node that was deleted, and releases what it held.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.waiting.remove(key);
        if let Some(uid) = self.names.remove(key) {
            self.allocator.release(&uid);
        }
    }

    /// Returns `true` if the Node was seen since the start.
    pub(super) fn knows(&self, key: &ObjectKey) -> bool {
        self.names.contains_key(key)
    }

    /// Records the pod CIDRs of a Node, as [`plan`](Self::plan) does, without a plan for a Node that has none.
    pub(super) fn record(&mut self, node: Observed<'_>) {
        self.name(node);
        if !node.pod_cidrs.is_empty() {
            self.occupy(node.uid, node.pod_cidrs);
        }
    }

    /// The Nodes that wait for a free block.
    pub(super) const fn waiting(&self) -> &BTreeSet<ObjectKey> {
        &self.waiting
    }
}

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(&self) -> String {
        match self {
            Self::Occupied => "the node has its pod CIDRs".to_owned(),
            Self::Wrong(wrong) => wrong.to_string(),
            Self::Terminating => "gives the node no pod CIDR, as it is being deleted".to_owned(),
            Self::UnknownNodes => "waits, as another node cannot be decoded and may have any pod CIDR".to_owned(),
            Self::Wait { index, .. } => format!("waits, as CIDR {index} of --cluster-cidr has no free block"),
            Self::Assign(reservation) => {
                let cidrs: Vec<String> = reservation.cidrs.iter().map(ToString::to_string).collect();
                format!("gives the node {}", cidrs.join(" and "))
            }
        }
    }
}
