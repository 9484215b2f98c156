//! The queue: its state behind a lock, with a clock and a wake-up for workers.

use std::hash::Hash;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::options::QueueOptions;
use crate::priority::Priority;
use crate::snapshot::{Held, KeyStatus, ParkedKeys, QueueCounts, QueueSnapshot, UnfinishedWork};
use crate::state::{State, Taken};

/// A queue of keys: see the [contract](crate). Clones are handles to one queue.
#[derive(Clone)]
pub struct Queue<K>(Arc<Inner<K>>);

/// A reference to a [`Queue`] that does not keep it, for metrics that are read later.
pub struct WeakQueue<K>(Weak<Inner<K>>);

impl<K> std::fmt::Debug for WeakQueue<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WeakQueue")
    }
}

impl<K> WeakQueue<K> {
    /// The queue, unless its last handle was dropped.
    #[must_use]
    pub fn upgrade(&self) -> Option<Queue<K>> {
        self.0.upgrade().map(Queue)
    }
}

struct Inner<K> {
    options: QueueOptions,
    started: Instant,
    state: Mutex<State<K>>,
    wake: Notify,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Creates an empty queue with these options.
    #[must_use]
    pub fn new(options: QueueOptions) -> Self {
        let state = Mutex::new(State::new(options.limits, options.ageing));
        Self(Arc::new(Inner { options, started: Instant::now(), state, wake: Notify::new() }))
    }

    /// The name of the queue.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.options.name
    }

    /// Adds a key, which is handed out when its turn comes.
    pub fn add(&self, key: K, priority: Priority) {
        self.with(|state, now| state.add(key, priority, now));
    }

    /// Adds a key when `delay` is over, also if it is added before that.
    pub fn add_after(&self, key: K, delay: Duration, priority: Priority) {
        self.with(|state, now| state.add_after(key, delay, priority, now));
    }

    /// Counts a failure of a key and adds it when its back-off is over and the token bucket has a token.
    ///
    /// It keeps the priority at which it was handed out. A key that is not processing counts as live.
    pub fn retry(&self, key: K) {
        self.retry_within(key, Duration::MAX);
    }

    /// As [`retry`](Self::retry), with a back-off of at most `longest`: for a failure whose end no event announces.
    pub fn retry_within(&self, key: K, longest: Duration) {
        self.with(|state, now| state.retry(key, longest, now));
    }

    /// Resets a key's failures. A retry that already waits is kept.
    pub fn forget(&self, key: &K) {
        self.with(|state, now| state.forget(key, now));
    }

    /// Waits for a key and returns it; the caller ends its processing with [`done`](Self::done) or
    /// [`park`](Self::park).
    ///
    /// `None` once the queue is shut down and nothing is ready. Yields to other tasks from time to time, even if keys
    /// are ready.
    ///
    /// # Cancellation
    /// Nothing is lost: a key is taken in the same step in which the future completes, and a wake-up that a dropped
    /// future had already received is passed to the next waiter.
    pub async fn get(&self) -> Option<K> {
        loop {
            // A worker that always finds a key must not starve the other tasks of its thread.
            tokio::task::coop::consume_budget().await;
            // Made before looking, so that it sees whatever happens after.
            let woken = self.0.wake.notified();
            match self.with(State::take) {
                Taken::Key { key, waited } => {
                    self.0.options.metrics.taken(waited);
                    return Some(key);
                }
                Taken::ShutDown => return None,
                Taken::NothingBefore { until } => match until.and_then(|due| self.0.started.checked_add(due)) {
                    // After the time and after a wake-up alike the state is asked again.
                    Some(due) => drop(timeout_at(due, woken).await),
                    None => woken.await,
                },
            }
        }
    }

    /// Ends the processing of a key; does nothing to a key that is not processing.
    ///
    /// The key is ready again if it was added since it was handed out.
    pub fn done(&self, key: &K) {
        if let Some(worked) = self.with(|state, now| state.done(key, now)) {
            self.0.options.metrics.finished(worked);
        }
    }

    /// Ends the processing of a key, and holds the key back until [`unpark`](Self::unpark).
    ///
    /// For a key whose writes the caches do not show yet: it must not be processed again before they do.
    pub fn park(&self, key: &K) {
        if let Some(worked) = self.with(|state, now| state.park(key, now)) {
            self.0.options.metrics.finished(worked);
        }
    }

    /// Releases a parked key; does nothing to a key that is not parked.
    ///
    /// The key is ready if it was added since it was last handed out.
    pub fn unpark(&self, key: &K) {
        self.with(|state, now| state.unpark(key, now));
    }

    /// Drops the keys that are ready or delayed, and their failures. Keys that are processing or parked stay, with what was
    /// added since they were taken.
    ///
    /// For an owner that stops its workers for a while, and adds all keys again before it starts them.
    pub fn clear(&self) {
        let dropped = self.with(State::clear);
        if dropped > 0 {
            self.0.options.metrics.dropped(dropped);
        }
    }

    /// Drops the delayed adds and ignores all adds from now on; [`get`](Self::get) returns `None` when no key is ready.
    ///
    /// # Upstream
    /// `ShutDown`, without waiting for the keys that are processing.
    pub fn shut_down(&self) {
        self.with(State::shut_down);
        self.0.wake.notify_waiters();
    }

    /// Applies an input to the state, then reports to the metrics and wakes waiting workers.
    pub(crate) fn with<R>(&self, input: impl FnOnce(&mut State<K>, Duration) -> R) -> R {
        let Inner { options, started, state, wake } = &*self.0;
        let mut state = state.lock();
        let (before, due_before) = (state.counts(), state.next_due());
        // The clock is read under the lock, so that the state's time never goes back.
        let result = input(&mut state, started.elapsed());
        let (counts, due, is_ready) = (state.counts(), state.next_due(), state.ready() > 0);
        drop(state);
        if counts.adds > before.adds {
            options.metrics.added(counts.adds - before.adds);
        }
        if counts.retries > before.retries {
            options.metrics.retried();
        }
        if due.is_some_and(|due| due_before.is_none_or(|before| due < before)) {
            // Every waiting worker sleeps until the next key is due, which now is earlier.
            wake.notify_waiters();
        }
        if is_ready {
            // One worker is enough: it wakes the next if another key is ready.
            wake.notify_one();
        }
        result
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Number of keys that are ready to be handed out.
    #[must_use]
    pub fn len(&self) -> usize {
        self.with(|state, now| {
            state.advance(now);
            state.ready()
        })
    }

    /// Returns `true` if no key is ready to be handed out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of failures of a key since it was last forgotten.
    #[must_use]
    pub fn failures(&self, key: &K) -> u32 {
        self.with(|state, _| state.failures(key))
    }

    /// The processing that has begun and not ended, for the two metrics that are read at each scrape.
    #[must_use]
    pub fn unfinished_work(&self) -> UnfinishedWork {
        self.with(|state, now| state.unfinished_work(now))
    }

    /// Number of parked keys, and the key that has been parked for longest. Reads the parked keys only.
    #[must_use]
    pub fn parked(&self) -> ParkedKeys<K> {
        self.with(|state, now| state.parked(now))
    }

    /// Returns the key with which the queue makes no progress, and for how long. It is the key that has been processing
    /// for longest, if that is at least `least`. Else, if no key was handed out for `least`, it is the key that has
    /// been ready for longest, if that is at least `least`.
    #[must_use]
    pub fn stalled(&self, least: Duration) -> Option<Held<K>> {
        self.with(|state, now| {
            state.advance(now);
            state.stalled(least, now)
        })
    }

    /// A reference that does not keep the queue.
    #[must_use]
    pub fn downgrade(&self) -> WeakQueue<K> {
        WeakQueue(Arc::downgrade(&self.0))
    }

    /// The status of the keys that match, in order, for debugging. Idle keys without failures or delay are not known.
    #[must_use]
    pub fn find(&self, matches: impl Fn(&K) -> bool) -> Vec<KeyStatus<K>>
    where
        K: Ord,
    {
        self.with(|state, now| state.find(matches, now))
    }

    /// The numbers of keys in each state. Looks at every key under the lock, and copies none.
    #[must_use]
    pub fn key_counts(&self) -> QueueCounts {
        self.with(State::key_counts)
    }

    /// A snapshot of the queue, for debugging. Looks at every key under the lock, and copies at most
    /// [`MOST_KEYS`](crate::MOST_KEYS) for each list.
    #[must_use]
    pub fn snapshot(&self) -> QueueSnapshot<K>
    where
        K: Ord,
    {
        self.with(State::snapshot)
    }
}
