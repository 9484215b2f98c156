//! The state of a volume on all nodes, as the objects of the cluster show it.
//!
//! Nothing is loaded at the start: objects show the whole state at any time, apart from [`Memory`].

use std::collections::BTreeMap;

use super::desired::Desired;
use super::names::Plugin;
use super::plan::{Attachment, Backend, Health, Memory, Observed, OnNode};
use super::report::ReportedVolume;

/// A node, as its object shows it.
#[derive(Debug)]
pub(super) struct NodeState {
    pub(super) health: Health,
    pub(super) reported: Vec<ReportedVolume>,
    pub(super) in_use: Vec<String>,
}

impl NodeState {
    /// Returns the health of a node that exists.
    ///
    /// # Upstream
    /// A taint counts with any effect. A node is managed if it has the annotation, with any value. Upstream treats the
    /// reported volumes of an unmanaged node as its own, and detaches them.
    pub(super) const fn health(is_managed: bool, is_ready: bool, is_out_of_service: bool) -> Health {
        match (is_managed, is_ready, is_out_of_service) {
            (false, _, _) => Health::Unmanaged,
            (true, _, true) => Health::OutOfService { is_ready },
            (true, true, false) => Health::Ready,
            (true, false, false) => Health::NotReady,
        }
    }
}

/// Returns the state of a volume on every node that needs it, reports it, uses it or has an attachment for it.
///
/// A node without object is not ready: its attachments remain to be deleted.
pub(super) fn observe<'a>(
    volume: &'a str,
    desired: &'a Desired,
    nodes: &'a BTreeMap<String, NodeState>,
    attachments: &BTreeMap<&'a str, Attachment<'a>>,
    memory: &BTreeMap<&str, Memory>,
) -> Observed<'a> {
    let mut on_nodes: BTreeMap<&'a str, OnNode<'a>> = BTreeMap::new();
    for (node, state) in nodes {
        let is_reported = state.reported.iter().any(|entry| entry.name == volume);
        let is_in_use = state.in_use.iter().any(|name| name == volume);
        if is_reported || is_in_use {
            on_nodes.insert(node, OnNode { is_reported, is_in_use, ..OnNode::default() });
        }
    }
    let mut is_shared = true;
    for (node, wanted) in desired.nodes_of(volume) {
        is_shared &= wanted.volume.is_shared;
        on_nodes.entry(node).or_default().is_wanted = true;
    }
    for (node, attachment) in attachments {
        on_nodes.entry(node).or_default().attachment = Some(attachment.clone());
    }
    for (node, on) in &mut on_nodes {
        on.node = node;
        on.health = nodes.get(*node).map_or(Health::NotReady, |state| state.health);
        on.memory = memory.get(node).copied().unwrap_or_default();
    }
    let backend = match Plugin::of(volume) {
        Plugin::Csi { .. } => Backend::Csi,
        Plugin::ReportOnly => Backend::ReportOnly,
        Plugin::Unknown => Backend::Unknown,
    };
    Observed { backend, is_shared, nodes: on_nodes.into_values().collect() }
}
