//! The time in which a loop runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kcm_workqueue::Queue;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::explain::Triggers;
use crate::queue_key::QueueKey;

type NotifyAgain = Box<dyn Fn() + Send + Sync>;

/// Says whether a loop runs. While it does not, as on a standby, its event handlers drop changes: nobody would take their
/// keys, and the keys of objects that are deleted long ago would go before all others when the loop starts.
///
/// When it starts, its event handlers are notified of what the caches hold then, so nothing is lost: a loop acts on states
/// and not on changes, and must find after a restart of the process what it has missed.
#[derive(Default)]
pub(crate) struct Activity {
    runs: Arc<AtomicBool>,
    /// Has each event handler of the loop notified of all objects.
    handlers: Mutex<Vec<NotifyAgain>>,
}

/// Read by event handlers: returns `true` while the loop runs.
#[derive(Clone)]
pub(crate) struct Runs(Arc<AtomicBool>);

impl Runs {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Activity {
    pub(crate) fn runs(&self) -> Runs {
        Runs(Arc::clone(&self.runs))
    }

    pub(crate) fn add_handler(&self, notify_again: impl Fn() + Send + Sync + 'static) {
        self.handlers.lock().push(Box::new(notify_again));
    }

    /// Begins a run, which ends with the returned value.
    ///
    /// A run that was cancelled leaves no key in the queue. A run that failed begins again soon: its event handlers go on.
    pub(crate) fn begin<'a, K: QueueKey>(
        &'a self,
        queue: &'a Queue<K>,
        triggers: &'a Triggers<K>,
        cancel: &'a CancellationToken,
    ) -> Running<'a, K> {
        // Before the handlers are notified of what the caches hold, so that no change falls between.
        if !self.runs.swap(true, Ordering::AcqRel) {
            self.handlers.lock().iter().for_each(|notify_again| notify_again());
        }
        Running { activity: self, queue, triggers, cancel }
    }
}

/// A run of a loop.
#[must_use = "the run ends when it is dropped"]
pub(crate) struct Running<'a, K: QueueKey> {
    activity: &'a Activity,
    queue: &'a Queue<K>,
    triggers: &'a Triggers<K>,
    cancel: &'a CancellationToken,
}

impl<K: QueueKey> Drop for Running<'_, K> {
    fn drop(&mut self) {
        if self.cancel.is_cancelled() {
            self.activity.runs.store(false, Ordering::Release);
            self.queue.clear();
            self.triggers.clear();
        }
    }
}
