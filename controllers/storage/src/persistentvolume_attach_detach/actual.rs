//! The state of a volume on all nodes, as the objects of the cluster show it.
//!
//! Nothing is loaded at the start: objects show the whole state at any time, apart from [`Memory`].

use std::collections::BTreeMap;

use super::desired::Wanted;
use super::names::Plugin;
use super::plan::{Attachment, Backend, Health, Memory, Observed, OnNode};

/// A volume on a node, as the object of the node shows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeState {
    pub(super) health: Health,
    pub(super) is_reported: bool,
    pub(super) is_in_use: bool,
}

impl NodeState {
    /// Returns the state on a node without object. The volume counts as in use unless the node was idle when it was
    /// deleted.
    pub(super) const fn absent(was_idle: bool) -> Self {
        Self { health: Health::Absent, is_reported: false, is_in_use: !was_idle }
    }

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

/// Returns the state of a volume on every node of `nodes`: nodes that need it, report it, use it or have an attachment
/// for it. `memory` is asked with the name of a node, and whether a pod on it needs the volume.
pub(super) fn observe<'a>(
    volume: &str,
    wanted: &'a BTreeMap<String, Wanted>,
    nodes: &'a BTreeMap<String, NodeState>,
    attachments: &BTreeMap<&str, Attachment<'a>>,
    memory: impl Fn(&str, bool) -> Memory,
) -> Observed<'a> {
    let on_node = |(node, state): (&'a String, &NodeState)| {
        let is_wanted = wanted.contains_key(node);
        OnNode {
            node,
            health: state.health,
            is_wanted,
            is_reported: state.is_reported,
            is_in_use: state.is_in_use,
            attachment: attachments.get(node.as_str()).cloned(),
            memory: memory(node, is_wanted),
        }
    };
    let backend = match Plugin::of(volume) {
        Plugin::Csi { .. } => Backend::Csi,
        Plugin::ReportOnly => Backend::ReportOnly,
        Plugin::Unknown => Backend::Unknown,
    };
    let is_shared = wanted.values().all(|wanted| wanted.volume.is_shared);
    Observed { backend, is_shared, nodes: nodes.iter().map(on_node).collect() }
}
