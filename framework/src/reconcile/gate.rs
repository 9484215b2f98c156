//! Writes that no key waits for, but the next run does.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_client::ApiClient;
use kcm_informers::Cache;
use kcm_workqueue::{Queue, QueueOptions};

use crate::consistency::pending_writes::PendingWrite;
use crate::consistency::{Primary, Tracker};
use crate::progress::{HeldKeys, Progress, STALLED_AFTER, Stall};

/// A gate that is closed while someone is inside, and until the caches show the writes that were made there.
///
/// It is a queue of one key: the writes inside the gate are handled as the writes of a key.
pub(crate) struct Gate {
    key: ObjectKey,
    queue: Queue<ObjectKey>,
    tracker: Arc<Tracker<ObjectKey>>,
}

impl Gate {
    /// An open gate of the loop `name`, which reads `caches`.
    pub(crate) fn new(name: &'static str, caches: Arc<[Arc<dyn Cache>]>) -> Self {
        let queue = Queue::new(QueueOptions::named(name));
        let tracker = Tracker::new(queue.clone(), caches, Primary::default());
        Self { key: ObjectKey::cluster_scoped(name), queue, tracker }
    }

    /// Waits until the gate is open, and enters.
    pub(crate) async fn enter(&self) -> Inside<'_> {
        self.queue.add(self.key.clone(), kcm_workqueue::Priority::Live);
        self.queue.get().await;
        Inside { gate: self, writes: Vec::new() }
    }

    /// Time for which the gate has been closed because of its writes. `None` unless it is.
    pub(crate) fn awaits_writes_for(&self) -> Option<Duration> {
        Some(self.queue.parked().longest?.age)
    }

    /// Checks the writes that are pending for long; never returns.
    pub(crate) async fn check_pending_writes(&self, live: &ApiClient) {
        self.tracker.check_pending_writes(live).await;
    }
}

/// Stalled if it has been closed for long because of its writes.
impl Progress for Gate {
    fn stall(&self) -> Option<Stall> {
        Stall::after(STALLED_AFTER, "its own writes", self.awaits_writes_for()?)
    }

    fn held(&self) -> HeldKeys {
        let waits = self.awaits_writes_for();
        HeldKeys {
            awaiting_writes: usize::from(waits.is_some()),
            longest_wait: waits.unwrap_or_default(),
            ..HeldKeys::default()
        }
    }
}

/// The inside of a [`Gate`], which opens when this is dropped and the caches show its writes.
pub(crate) struct Inside<'a> {
    gate: &'a Gate,
    /// The writes made inside.
    pub(crate) writes: Vec<PendingWrite>,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.gate.tracker.finish(&self.gate.key, None, &self.writes);
    }
}
