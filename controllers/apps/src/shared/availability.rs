//! The time at which the next pod becomes available, and the delayed key for it.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::Enqueue;
use kcm_framework::api::views::Pod;
use kcm_framework::api::{KnownView, ObjectKey};
use kcm_framework::informers::Change;
use kcm_framework::ownership::{OwnerLister, Owners};

/// Returns the time at which the next of these ready pods becomes available, of which no event tells. `None` if no pod
/// waits for `minReadySeconds`.
///
/// If pods wait, but none has the time at which it became ready, returns a whole period from `now`.
pub(crate) fn next_availability<'a>(
    ready: impl Iterator<Item = &'a Arc<Pod>>,
    min_ready_seconds: i32,
    now: Timestamp,
) -> Option<Timestamp> {
    if min_ready_seconds <= 0 {
        return None;
    }
    let period = SignedDuration::from_secs(min_ready_seconds.into());
    let after = |time: Timestamp| time.saturating_add(period).expect("a duration without months adds to any time");
    let mut waiting = ready.filter(|pod| !pod.is_available_at(min_ready_seconds, now)).peekable();
    waiting.peek()?;
    Some(waiting.filter_map(|pod| pod.ready_since()).map(after).min().unwrap_or_else(|| after(now)))
}

/// Enqueues the owner of a pod that became ready again when the pod becomes available, however the reconciles before end.
pub(crate) fn when_available<V: KnownView, L: OwnerLister<V>>(
    change: &Change<Pod>,
    owners: &Owners<V, L>,
    min_ready_seconds: impl Fn(&V) -> i32,
) -> Option<Enqueue<ObjectKey>> {
    let Change::Updated { old, new } = change else { return None };
    if new.metadata.is_terminating() || old.is_ready() || !new.is_ready() {
        return None;
    }
    let owner = owners.controller_of(&new.metadata)?;
    let period = u64::try_from(min_ready_seconds(&owner)).ok().filter(|period| *period > 0)?;
    Some(Enqueue::after(owner.meta().key.clone(), Duration::from_secs(period)))
}
