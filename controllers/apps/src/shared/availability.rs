//! The time at which the next pod becomes available.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::views::Pod;

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
