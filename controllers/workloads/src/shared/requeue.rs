//! When a key is reconciled again without an event.

use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::Outcome;

/// The outcome of a reconcile whose key is to be reconciled again at a time, at once if that is past.
pub(crate) fn requeue_at(at: Timestamp, now: Timestamp) -> Outcome {
    Outcome::requeue_after(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}
