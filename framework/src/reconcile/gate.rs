//! Writes that no key waits for, but the next run does.

use std::sync::Arc;

use kcm_api::ObjectKey;
use kcm_client::ApiClient;
use kcm_informers::Cache;
use kcm_workqueue::{Queue, QueueOptions};

use crate::consistency::pending_writes::PendingWrite;
use crate::consistency::{Primary, Tracker};

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

    /// Checks the writes that are pending for long; never returns.
    pub(crate) async fn check_pending_writes(&self, live: &ApiClient) {
        self.tracker.check_pending_writes(live).await;
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
