//! A snapshot of a queue, for debugging.

use std::time::Duration;

/// Largest number of keys in each list of a snapshot. Copying more of them would hold up workers.
pub const MOST_KEYS: usize = 100;

/// The numbers of keys of a queue in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Number of keys that are ready to be handed out.
    pub ready: usize,
    /// Number of keys that workers process.
    pub processing: usize,
    /// Number of parked keys.
    pub parked: usize,
    /// Number of keys that will be added later.
    pub delayed: usize,
    /// Number of keys whose last attempts failed.
    pub failing: usize,
}

/// A snapshot of a queue, for debugging. Each list has its first [`MOST_KEYS`] keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSnapshot<K> {
    /// The numbers of keys in each state.
    pub counts: QueueCounts,
    /// Time for which the oldest of the ready keys has been ready.
    pub oldest: Option<Duration>,
    /// The keys that workers process, the longest processing first.
    pub processing: Vec<Held<K>>,
    /// The parked keys, the longest parked first.
    pub parked: Vec<Held<K>>,
    /// The keys that will be added later, the next first.
    pub delayed: Vec<Delayed<K>>,
    /// The keys whose last attempts failed, the most failures first.
    pub failing: Vec<Failing<K>>,
    /// Number of keys that take memory. Idle keys without failures do not.
    pub remembered: usize,
    /// Whether the queue was shut down.
    pub shut_down: bool,
}

/// A key that is processing or parked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held<K> {
    /// The key that is held.
    pub key: K,
    /// Time since it was taken, was parked or became ready.
    pub age: Duration,
}

/// A key that will be added later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delayed<K> {
    /// The key that is delayed.
    pub key: K,
    /// Time until the key is added.
    pub due_in: Duration,
}

/// A key whose last attempts failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing<K> {
    /// The key that has failed.
    pub key: K,
    /// Number of failures in a row.
    pub failures: u32,
    /// Whether its back-off is at its maximum. Such a key needs the attention of an operator.
    pub at_longest_backoff: bool,
}

/// The processing that has begun and not ended; the time that keys are parked does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnfinishedWork {
    /// The processing times of all processing keys, summed: `workqueue_unfinished_work_seconds`.
    pub total: Duration,
    /// The processing time of the longest processing key: `workqueue_longest_running_processor_seconds`.
    pub longest: Duration,
}

/// The keys that are held back until they are unparked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedKeys<K> {
    /// Number of parked keys.
    pub count: usize,
    /// The key that has been parked for longest.
    pub longest: Option<Held<K>>,
}

/// The status of one key that takes memory, for debugging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyStatus<K> {
    /// The key with this status.
    pub key: K,
    /// Place of the key in the queue.
    pub stage: KeyStage,
    /// Whether it was added since it was taken. A key that is ready always was.
    pub is_added: bool,
    /// Time until a delayed add is due.
    pub due_in: Option<Duration>,
    /// Number of failures in a row.
    pub failures: u32,
}

/// The place of a key in its queue, and the time it has been there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStage {
    /// It is not queued; it may be due later.
    Idle,
    /// It is ready to be handed out.
    Ready(Duration),
    /// A worker processes it.
    Processing(Duration),
    /// It is held back until it is unparked.
    Parked(Duration),
}
