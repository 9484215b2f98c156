//! Event mapping: the claims that a change enqueues.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{PersistentVolumeClaim, Pod};
use kcm_framework::informers::Change;

use super::plan::FINALIZER;
use super::usage::{PodReader, claims_of};
use crate::shared::protection::is_candidate;

/// A claim is enqueued if its finalizer may have to change, or if it lacks the condition `Unused` and the controller
/// records it.
pub(super) fn keys_for_claim(change: &Change<PersistentVolumeClaim>, records_use: bool) -> Option<ObjectKey> {
    let claim = match change {
        Change::Added(claim) | Change::Updated { new: claim, .. } => claim,
        Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    let is_enqueued = (records_use && claim.unused.is_none()) || is_candidate(&claim.metadata, FINALIZER);
    is_enqueued.then(|| claim.metadata.key.clone())
}

/// A Pod enqueues its claims when it is added or deleted, or when its use of them may have changed.
pub(super) fn keys_for_pod(change: &Change<Pod>, reader: PodReader) -> Vec<ObjectKey> {
    match change {
        Change::Added(pod) | Change::Deleted { last: pod, .. } => claims_of(reader.use_of(pod)),
        Change::Updated { old, new } if old.metadata.uid != new.metadata.uid => {
            let (mut old, new) = (claims_of(reader.use_of(old)), claims_of(reader.use_of(new)));
            old.extend(new);
            old
        }
        Change::Updated { old, new } => {
            let (old, new) = (reader.use_of(old), reader.use_of(new));
            let states = [old, new].map(|pod| (pod.is_assigned, pod.is_terminated, pod.is_shut_down));
            if states[0] == states[1] && old.volumes == new.volumes { Vec::new() } else { claims_of(new) }
        }
        // It may still use them.
        Change::Undecodable { .. } => Vec::new(),
    }
}
