//! Event mapping: the Pods that a change enqueues.

use kcm_framework::api::scheduling::Taint;
use kcm_framework::api::views::{Node, Pod, PodTolerations};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::Change;

/// A Pod is enqueued if its Node has a taint that evicts, and the Pod is added, assigned, or has other tolerations. A
/// deletion enqueues it too, so that nothing is kept for it.
///
/// A Pod on a Node without such a taint is enqueued by the Node, if it gets one.
pub(super) fn keys_for_pod(
    change: &Change<Pod>,
    tolerations: PartReader<PodTolerations>,
    is_tainted: impl Fn(&str) -> bool,
) -> Option<ObjectKey> {
    let pod = match change {
        Change::Added(pod) => pod,
        Change::Updated { old, new } => {
            let reads = |pod| (&tolerations.of(pod).tolerations, pod.metadata.is_terminating());
            let is_same = (&old.metadata.uid, &old.node_name) == (&new.metadata.uid, &new.node_name);
            if is_same && reads(old) == reads(new) {
                return None;
            }
            new
        }
        Change::Deleted { .. } => return Some(change.key().clone()),
        Change::Undecodable { .. } => return None,
    };
    pod.node_name.as_deref().is_some_and(is_tainted).then(|| pod.metadata.key.clone())
}

/// Returns the name of a Node whose Pods are enqueued: its evicting taints changed, it was added with such a taint, or
/// it was deleted.
pub(super) fn node_with_other_taints(change: &Change<Node>) -> Option<&str> {
    let is_changed = match change {
        Change::Added(node) => is_tainted(node),
        Change::Updated { old, new } => !evicting(old).eq(evicting(new)),
        Change::Deleted { last, .. } => is_tainted(last),
        Change::Undecodable { .. } => false,
    };
    is_changed.then(|| change.key().name())
}

/// Returns `true` if the Node has a taint with the effect `NoExecute`.
pub(super) fn is_tainted(node: &Node) -> bool {
    evicting(node).next().is_some()
}

fn evicting(node: &Node) -> impl Iterator<Item = &Taint> {
    node.taints.iter().filter(|taint| taint.evicts())
}
