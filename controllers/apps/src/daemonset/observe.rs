//! The snapshot of the pods and revisions of a `DaemonSet`, and all nodes, from the caches.

use std::sync::Arc;

use kcm_framework::api::PartReader;
use kcm_framework::api::views::{ControllerRevision, DaemonSet, Node, Pod, PodTargetNode};
use kcm_framework::informers::{Informer, UndecodableObject};
use kcm_framework::ownership::{Dependents, Owner};

use super::pods_by_node::node_of;

/// The snapshot of one `DaemonSet`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    /// All nodes, by name.
    pub(super) nodes: Vec<Arc<Node>>,
    /// The pods that the `DaemonSet` controls, and the orphans of its namespace that it selects.
    pub(super) pods: Vec<Arc<Pod>>,
    /// The revisions that the `DaemonSet` controls, and the orphans of its namespace that it selects.
    pub(super) revisions: Vec<Arc<ControllerRevision>>,
}

/// The caches that the controller reads.
pub(super) struct Caches {
    pub(super) nodes: Informer<Node>,
    pods: Dependents<Pod>,
    revisions: Dependents<ControllerRevision>,
}

impl Caches {
    /// Adds the indexes by owner, which all controllers share.
    pub(super) fn new(nodes: Informer<Node>, pods: &Informer<Pod>, revisions: &Informer<ControllerRevision>) -> Self {
        Self { nodes, pods: Dependents::of(pods), revisions: Dependents::of(revisions) }
    }

    /// Returns the snapshot of a `DaemonSet`.
    pub(super) fn observe(&self, set: &DaemonSet) -> Observed {
        let selector = set.selector.as_ref().ok();
        let nodes = self.nodes.list();
        let owner = Owner::of(set);
        let pods = self.pods.owned_or_orphaned(owner, selector);
        let revisions = self.revisions.owned_or_orphaned(owner, selector);
        Observed { nodes, pods, revisions }
    }

    /// Returns a node that cannot be decoded and that one of the pods runs on or is made for.
    pub(super) fn undecodable_node_of(
        &self,
        pods: &[Arc<Pod>],
        targets: PartReader<PodTargetNode>,
    ) -> Option<Arc<UndecodableObject>> {
        let undecodable = self.nodes.undecodable_objects();
        let has_pod = |node: &Arc<UndecodableObject>| {
            pods.iter().any(|pod| node_of(pod, targets).is_some_and(|name| name == node.key.name()))
        };
        undecodable.into_iter().find(has_pod)
    }
}
