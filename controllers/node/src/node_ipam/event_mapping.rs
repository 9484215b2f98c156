//! Event mapping: the keys that a change of a Node enqueues.

use kcm_framework::api::views::{Node, NodePodCidrs};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::Change;

/// A Node is enqueued if it is added or deleted, recreated, has other pod CIDRs, or has none.
pub(super) fn keys_for_node(change: &Change<Node>, cidrs: PartReader<NodePodCidrs>) -> Option<ObjectKey> {
    let is_enqueued = match change {
        Change::Added(_) | Change::Deleted { .. } => true,
        Change::Updated { old, new } => {
            let (before, after) = (&cidrs.of(old).pod_cidrs, &cidrs.of(new).pod_cidrs);
            after.is_empty() || before != after || old.metadata.uid != new.metadata.uid
        }
        Change::Undecodable { .. } => false,
    };
    is_enqueued.then(|| change.key().clone())
}
