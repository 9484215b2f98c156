//! The snapshot of a daemon set, its pods and revisions, and all nodes, from the caches.

use std::sync::Arc;

use kcm_api::ObjectKey;
use kcm_api::views::{ControllerRevision, DaemonSet, Node, Pod};
use kcm_framework::ownership::{Dependents, Owner};
use kcm_informers::Informer;

/// The snapshot of one daemon set.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    /// The daemon set.
    pub(super) set: Arc<DaemonSet>,
    /// All nodes, by name.
    pub(super) nodes: Vec<Arc<Node>>,
    /// The pods that the set controls, and the orphans of its namespace that it selects.
    pub(super) pods: Vec<Arc<Pod>>,
    /// The revisions that the set controls, and the orphans of its namespace that it selects.
    pub(super) revisions: Vec<Arc<ControllerRevision>>,
}

/// The caches that the controller reads.
pub(super) struct Caches {
    sets: Informer<DaemonSet>,
    nodes: Informer<Node>,
    pods: Dependents<Pod>,
    revisions: Dependents<ControllerRevision>,
}

impl Caches {
    /// Adds the indexes by owner, which all controllers share.
    pub(super) fn new(
        sets: Informer<DaemonSet>,
        nodes: Informer<Node>,
        pods: &Informer<Pod>,
        revisions: &Informer<ControllerRevision>,
    ) -> Self {
        Self { sets, nodes, pods: Dependents::of(pods), revisions: Dependents::of(revisions) }
    }

    /// The snapshot of one daemon set; absent if it does not exist.
    pub(super) fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let set = self.sets.get(key)?;
        let selector = set.selector.as_ref().ok();
        let mut nodes = self.nodes.list();
        nodes.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
        let owner = Owner::of(&*set);
        let pods = self.pods.owned_or_orphaned(owner, selector);
        let revisions = self.revisions.owned_or_orphaned(owner, selector);
        Some(Observed { set, nodes, pods, revisions })
    }
}
