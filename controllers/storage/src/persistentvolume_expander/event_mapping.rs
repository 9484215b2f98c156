//! Event mapping: the claims that a change enqueues.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{ClaimPhase, PersistentVolumeClaim};
use kcm_framework::informers::Change;

use super::plan::{capacity, request};

/// A bound claim is enqueued when it is added, when its request grows, and when its capacity grows: the volume then keeps
/// the old capacity no longer.
pub(super) fn key_for_claim(change: &Change<PersistentVolumeClaim>) -> Option<ObjectKey> {
    let claim = match change {
        Change::Added(claim) => claim,
        Change::Updated { old, new } => {
            let is_other = old.metadata.uid != new.metadata.uid;
            let grows = request(new) > request(old) || capacity(new) > capacity(old);
            if !is_other && !grows {
                return None;
            }
            new
        }
        Change::Undecodable { .. } | Change::Deleted { .. } => return None,
    };
    (claim.phase == ClaimPhase::Bound).then(|| claim.metadata.key.clone())
}
