//! The state of a pending write in a live list.

use kcm_api::{ObjectKey, ResourceVersion};
use kcm_informers::ObjectState;
use tokio::time::Instant;

use super::write::{CacheIndex, PendingWrite};

/// The state of one object in a live list, and its state in the cache after that list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveState {
    /// The resource version of the live list.
    pub list_version: ResourceVersion,
    /// The object in the live list.
    pub live: Option<ObjectState>,
    /// The object in the cache, read after the response of the list.
    pub cached: Option<ObjectState>,
}

/// A live check that is due: list `object` in the resource of `cache`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCheck<K> {
    /// The key that waits.
    pub key: K,
    /// The cache of the resource to list.
    pub cache: CacheIndex,
    /// The object to list.
    pub object: ObjectKey,
    /// The number of the call that added the writes of the key.
    pub added: u64,
}

/// Returns the pending write that remains of `write` after a live check, or `None` if it is confirmed.
pub(super) fn after_check(write: PendingWrite, begun: Instant, state: &LiveState) -> Option<PendingWrite> {
    // The cache shows the state of the live list: there is nothing more to wait for.
    let current = match (&state.live, &state.cached) {
        (None, None) => true,
        (Some(live), Some(cached)) => {
            live.uid == cached.uid && cached.resource_version.is_at_least(&live.resource_version) != Some(false)
        }
        (Some(_), None) | (None, Some(_)) => false,
    };
    match write {
        PendingWrite::OutcomeUnknown { deadline, .. } if begun < deadline => Some(write),
        // The API server chose the name, which was lost with the response: any object of the list may be it.
        PendingWrite::OutcomeUnknown { cache, object, .. } if object.name().is_empty() => {
            Some(PendingWrite::Version { cache, object, version: state.list_version.clone() })
        }
        PendingWrite::OutcomeUnknown { cache, object, deleted, .. } => match (deleted, &state.live) {
            (Some(uid), Some(live)) if live.uid == uid && !live.terminating => None,
            (Some(uid), _) => match &state.cached {
                Some(cached) if cached.uid == uid && !cached.terminating => {
                    Some(PendingWrite::Deletion { cache, object, uid })
                }
                Some(_) | None => None,
            },
            (None, _) if current => None,
            (None, Some(live)) => Some(PendingWrite::Version { cache, object, version: live.resource_version.clone() }),
            (None, None) => Some(PendingWrite::Version { cache, object, version: state.list_version.clone() }),
        },
        PendingWrite::Version { ref version, .. } => {
            let restored = state.list_version.is_at_least(version) == Some(false);
            // It stands for every write up to its version. A cache that shows this object has applied them all; one
            // that does not may have missed both the creation and the deletion of the object, and other writes with
            // them.
            let caught_up = current && state.cached.is_some();
            (!caught_up && !restored).then_some(write)
        }
        PendingWrite::Deletion { ref uid, .. } => {
            let undone = state.live.as_ref().is_some_and(|live| live.uid == *uid && !live.terminating);
            let seen = state.cached.as_ref().is_none_or(|cached| cached.uid != *uid || cached.terminating);
            (!undone && !seen).then_some(write)
        }
    }
}
