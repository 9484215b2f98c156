//! The `DaemonSets` that a change of a node concerns.
//!
//! Changes of nodes are queued by node. A cluster has many nodes and some `DaemonSets`, and most changes of a node
//! concern no `DaemonSet`. The reconcile of a `DaemonSet` goes through all nodes, and would be wasted.

use kcm_framework::api::views::{DaemonSet, DaemonSetView, Node, Pod, PodTargetNode};
use kcm_framework::api::{InternedStr, KnownView as _, ObjectKey, PartReader, Uid};
use kcm_framework::informers::{Index, Informer};
use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};

use super::gates::Gates;
use super::placement::Placement;
use super::pods_by_node::node_of;

/// The pods of `DaemonSets`, by `DaemonSet` and node.
pub(super) struct DaemonPods(Index<Pod, (Uid, InternedStr)>);

impl DaemonPods {
    pub(super) fn of(pods: &Informer<Pod>, targets: PartReader<PodTargetNode>) -> Self {
        Self(pods.index("daemon", move |pod| daemon_of(pod, targets)))
    }

    fn is_on(&self, set: &DaemonSet, node: &str) -> bool {
        self.0.count(&(set.metadata.uid.clone(), node.into())) > 0
    }
}

/// Returns the `DaemonSet` and the node of a pod. A finished pod that is being deleted does not count.
fn daemon_of(pod: &Pod, targets: PartReader<PodTargetNode>) -> Option<(Uid, InternedStr)> {
    if pod.is_finished() && pod.metadata.is_terminating() {
        return None;
    }
    let controller = pod.metadata.controller().filter(|owner| *owner.kind == *DaemonSet::RESOURCE.kind)?;
    Some((controller.uid.clone(), node_of(pod, targets)?.into()))
}

/// Returns true if a node that changed concerns a `DaemonSet`: the node should run the daemon and has no pod, or it has a pod
/// that may not stay or that may be counted as misscheduled. A node that was deleted has no placement.
///
/// # Upstream
/// `syncNodeUpdate`.
pub(super) fn concerns(set: &DaemonSetView, placement: Option<Placement<'_>>, has_pod: bool) -> bool {
    match placement {
        None => has_pod,
        Some(placement) if has_pod => !placement.may_stay() || set.status.number_misscheduled > 0,
        Some(placement) => placement.should_run(),
    }
}

/// Enqueues the `DaemonSets` that a node concerns.
pub(super) struct NodeReconciler {
    pub(super) sets: Informer<DaemonSet>,
    pub(super) nodes: Informer<Node>,
    pub(super) pods: DaemonPods,
    pub(super) gates: Gates,
    /// The queue of `DaemonSets`.
    pub(super) queue: Queue<ObjectKey>,
}

#[async_trait]
impl Reconcile for NodeReconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let node = self.nodes.get(key);
        let mut enqueued = 0;
        for set in self.sets.list() {
            let placement = node.as_ref().map(|node| Placement::of(&set, node, self.gates));
            if concerns(&set, placement, self.pods.is_on(&set, key.name())) {
                self.queue.add(set.metadata.key.clone(), Priority::Live);
                enqueued += 1;
            }
        }
        session.explain(|| format!("enqueues {enqueued} daemon sets that the node concerns"));
        Ok(())
    }
}
