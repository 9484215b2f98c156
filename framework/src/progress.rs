//! Detects loops that make no progress with their keys.

use std::sync::Arc;
use std::time::Duration;

use kcm_workqueue::Queue;

use crate::queue_key::QueueKey;

/// Time for which a key is processed, or no key is taken while keys are ready, before the loop counts as stalled. It is
/// longer than the repetitions of several requests of one reconcile take.
pub const STALLED_AFTER: Duration = Duration::from_mins(2);

/// A loop that makes no progress while it has keys.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// The key that is processed, or that waits, for longest.
    pub key: String,
    /// Time for which it makes no progress.
    pub duration: Duration,
}

/// The stall of a queue of any type of keys; `None` while it makes progress or has no keys.
pub(crate) type StallProbe = Arc<dyn Fn() -> Option<Stall> + Send + Sync>;

/// The stall of that queue.
pub(crate) fn stall_probe<K: QueueKey>(queue: &Queue<K>) -> StallProbe {
    let queue = queue.downgrade();
    Arc::new(move || {
        let held = queue.upgrade()?.stalled(STALLED_AFTER)?;
        Some(Stall { key: held.key.to_string(), duration: held.age })
    })
}
