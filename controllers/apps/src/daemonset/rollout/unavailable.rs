//! A rolling update without surge: old pods are deleted as `maxUnavailable` allows, and their nodes get new ones.

use super::super::changes::{DeleteReason, PodChanges};
use super::super::pods_by_node::NodePods;
use super::super::snapshot::Snapshot;

/// Deletes every old pod that is not available, and as many available old pods as `max_unavailable` allows.
///
/// With 5 nodes, of which one has an old pod that is not available and one a new pod that is not available yet, and 3
/// that may be unavailable: the old pod that is not available goes, and `3 − 2 = 1` of the others.
///
/// # Guarantees
/// The deletion of an available pod never leaves more than `max_unavailable` nodes without an available pod. A node
/// whose pod is being deleted counts as unavailable, and so does one with several pods of one template.
pub(super) fn plan(snapshot: &Snapshot<'_>, max_unavailable: usize) -> PodChanges {
    let mut changes = PodChanges::default();
    let (mut unavailable, mut candidates) = (0, Vec::new());
    let empty = snapshot
        .placements
        .iter()
        .filter(|(node, placement)| placement.should_run() && snapshot.pods.on(node).is_empty());
    unavailable += empty.count();
    for (_, pods) in snapshot.pods.iter() {
        match NodePods::of(pods, &snapshot.revision) {
            None | Some(NodePods { new: None, old: None } | NodePods { new: Some(_), old: Some(_) }) => {
                unavailable += 1;
            }
            Some(NodePods { new: Some(new), old: None }) => unavailable += usize::from(!snapshot.is_available(new)),
            Some(NodePods { new: None, old: Some(old) }) if snapshot.is_available(old) => candidates.push(old),
            Some(NodePods { new: None, old: Some(old) }) => {
                unavailable += 1;
                changes.delete(old, DeleteReason::OldUnavailable);
            }
        }
    }
    for old in candidates.into_iter().take(max_unavailable.saturating_sub(unavailable)) {
        changes.delete(old, DeleteReason::Update);
    }
    changes
}
