//! The keys whose reconcile failed while the API server may have been unreachable.

use kcm_informers::Connection;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Keys that wait for the verdict of a probe. Their reconcile counts as failed only if the API server was reachable.
pub(super) struct Undecided<T> {
    connection: Connection,
    waiting: Mutex<Vec<Waiting<T>>>,
    added: Notify,
}

struct Waiting<T> {
    item: T,
    /// Number of outages when its reconcile began, so that an outage that has begun and ended since is not missed.
    outages: u64,
}

impl<T> Undecided<T> {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, waiting: Mutex::default(), added: Notify::new() }
    }

    /// Adds the item of a reconcile that began when there had been so many `outages`.
    pub(super) fn add(&self, item: T, outages: u64) {
        self.waiting.lock().push(Waiting { item, outages });
        self.added.notify_one();
    }

    /// Passes each item to `decided`, with whether the API server was reachable during its reconcile; never returns.
    ///
    /// # Cancellation
    /// No item is lost.
    pub(super) async fn decide(&self, decided: impl Fn(T, bool)) {
        loop {
            // A probe that is under way does not judge what is added now.
            let judged = self.waiting.lock().len();
            if judged == 0 {
                self.added.notified().await;
                continue;
            }
            let is_reachable = self.connection.verdict().await;
            let outages = self.connection.outages();
            let items: Vec<Waiting<T>> = self.waiting.lock().drain(..judged).collect();
            for Waiting { item, outages: before } in items {
                decided(item, is_reachable && outages == before);
            }
        }
    }
}
