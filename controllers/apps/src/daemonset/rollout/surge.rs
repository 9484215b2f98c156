//! A rolling update with surge: nodes get a new pod beside the old one, which is deleted when the new one is available.

use super::super::changes::{CreateReason, DeleteReason, PodChanges};
use super::super::pods_by_node::NodePods;
use super::super::snapshot::Snapshot;

/// Creates a new pod for every node whose old pod is not available, and beside as many available old pods as `max_surge`
/// allows. Deletes old pods whose node has an available new one.
///
/// On a node that should not run the daemon any more, an old pod goes at once if it is not available, and otherwise when
/// more pods are available than nodes should run the daemon: the daemon moves to other nodes without a gap.
///
/// # Guarantees
/// At most `max_surge` nodes with an available old pod have a new pod that is not available.
pub(super) fn plan(snapshot: &Snapshot<'_>, max_surge: usize) -> PodChanges {
    let mut changes = PodChanges::default();
    let (mut surging, mut available) = (0, 0);
    let (mut candidates, mut not_placed) = (Vec::new(), Vec::new());
    for (node, pods) in snapshot.pods.iter() {
        let Some(NodePods { new, old }) = NodePods::of(pods, &snapshot.revision) else {
            surging += 1;
            continue;
        };
        let counted = old.or(new);
        available += usize::from(counted.is_some_and(|pod| snapshot.is_available(pod)));
        match (old, new) {
            (None, _) => {}
            (Some(old), Some(new)) if snapshot.is_available(new) => changes.delete(old, DeleteReason::Replaced),
            (Some(_), Some(_)) => surging += 1,
            // The pod garbage collector deletes the pods of a node that does not exist.
            (Some(_), None) if !snapshot.placements.contains_key(node) => {}
            (Some(old), None) => match (snapshot.is_available(old), snapshot.should_run(node)) {
                (false, false) => changes.delete(old, DeleteReason::OldUnavailable),
                (false, true) => changes.create(node, CreateReason::OldUnavailable),
                (true, false) => not_placed.push(old),
                (true, true) => candidates.push(node),
            },
        }
    }
    let spare = available.saturating_sub(usize::try_from(snapshot.desired()).unwrap_or(0));
    for old in not_placed.into_iter().take(spare) {
        changes.delete(old, DeleteReason::NotPlacedAnyMore);
    }
    for node in candidates.into_iter().take(max_surge.saturating_sub(surging)) {
        changes.create(node, CreateReason::Surge);
    }
    changes
}
