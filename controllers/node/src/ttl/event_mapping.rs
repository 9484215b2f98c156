//! Event mapping: the keys that a change of a Node enqueues.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Node;
use kcm_framework::informers::Change;

/// Every change of a Node enqueues it. A deletion does too, because it changes the size of the cluster.
pub(super) fn keys_for_node(change: &Change<Node>) -> Option<ObjectKey> {
    match change {
        Change::Added(_) | Change::Updated { .. } | Change::Deleted { .. } => Some(change.key().clone()),
        Change::Undecodable { .. } => None,
    }
}
