//! A key to enqueue.

use std::time::Duration;

/// A key to enqueue, at once or after a delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueue<K> {
    /// The key to add to the queue.
    pub key: K,
    /// The delay; zero for none.
    pub after: Duration,
}

impl<K> Enqueue<K> {
    /// Enqueues `key` after a delay, also if it is enqueued before.
    #[must_use]
    pub const fn after(key: K, after: Duration) -> Self {
        Self { key, after }
    }
}

impl<K> From<K> for Enqueue<K> {
    /// Enqueues the key at once.
    fn from(key: K) -> Self {
        Self { key, after: Duration::ZERO }
    }
}
