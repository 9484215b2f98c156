//! The times at which claims were first seen to be terminating.

use std::collections::HashMap;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::PersistentVolumeClaim;
use kcm_framework::informers::Change;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::plan::FINALIZER;
use crate::shared::protection::is_candidate;

/// The terminating claims that have the finalizer.
///
/// A kubelet does not start a Pod whose claim is terminating. So a list of Pods that was requested after the claim was seen
/// to be terminating has all Pods that may use the claim, and an older one may lack some.
#[derive(Debug, Default)]
pub(super) struct Terminating(Mutex<HashMap<ObjectKey, Instant>>);

impl Terminating {
    /// Notes the change of a claim at `now`.
    pub(super) fn note(&self, change: &Change<PersistentVolumeClaim>, now: Instant) {
        let mut seen = self.0.lock();
        match change {
            Change::Added(claim) | Change::Updated { new: claim, .. }
                if claim.metadata.is_terminating() && is_candidate(&claim.metadata, FINALIZER) =>
            {
                seen.entry(claim.metadata.key.clone()).or_insert(now);
            }
            Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } | Change::Deleted { .. } => {
                seen.remove(change.key());
            }
        }
    }

    /// Returns the time at which the claim was first seen to be terminating.
    pub(super) fn since(&self, claim: &ObjectKey) -> Option<Instant> {
        self.0.lock().get(claim).copied()
    }
}
