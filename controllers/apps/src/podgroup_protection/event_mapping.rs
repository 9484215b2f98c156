//! Event mapping: the groups that a change enqueues.

use kcm_framework::api::views::{Pod, PodGroupMembership};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::Change;

use super::plan::{group_of, is_candidate};
use super::view::PodGroup;

/// A terminating group with the finalizer is enqueued when it is added, updated or resynced, and a group that is deleted is
/// enqueued, so that its first look is forgotten.
pub(super) fn keys_for_group(change: &Change<PodGroup>) -> Option<ObjectKey> {
    match change {
        Change::Added(group) | Change::Updated { new: group, .. } => {
            is_candidate(&group.metadata).then(|| group.metadata.key.clone())
        }
        Change::Deleted { last, .. } => Some(last.metadata.key.clone()),
        Change::Undecodable { .. } => None,
    }
}

/// A pod enqueues its group when it has ended, is deleted, or is recreated, and the group that it leaves.
pub(super) fn keys_for_pod(change: &Change<Pod>, membership: PartReader<PodGroupMembership>) -> Vec<ObjectKey> {
    let group = |pod: &Pod| group_of(pod, membership);
    let of_ended = |pod: &Pod| group(pod).filter(|_| pod.phase.is_final());
    let (ended, left) = match change {
        Change::Added(pod) => (of_ended(pod), None),
        Change::Updated { old, new } => {
            let is_same = old.metadata.uid == new.metadata.uid && group(old) == group(new);
            (of_ended(new), group(old).filter(|_| !is_same))
        }
        Change::Deleted { last, .. } => (None, group(last)),
        // It may still be active.
        Change::Undecodable { .. } => (None, None),
    };
    let mut keys: Vec<ObjectKey> = ended.into_iter().chain(left).collect();
    keys.dedup();
    keys
}
