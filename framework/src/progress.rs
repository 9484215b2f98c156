//! Detects loops that make no progress.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Time after which a loop counts as stalled: a key is processed, or waits for its own writes, for that long, or no key
/// is taken for that long while keys are ready. It is longer than the repetitions of several requests of one reconcile
/// take.
pub const STALLED_AFTER: Duration = Duration::from_mins(2);

/// A loop that makes no progress although it has work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// The key that is processed, or that waits, for longest. For a loop without keys, the step that does not end.
    pub key: String,
    /// Time for which it makes no progress.
    pub duration: Duration,
}

/// The keys of a loop that are held back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldKeys {
    /// Number of keys that wait until the caches show their own writes. A loop that waits as a whole counts as one key.
    pub awaiting_writes: usize,
    /// Time for which the first of them has waited.
    pub longest_wait: Duration,
    /// Number of keys that wait until an object that they are about, or that they look up, can be decoded.
    pub undecodable: usize,
}

/// A loop whose progress can be seen.
pub(crate) trait Progress: Send + Sync {
    /// The stall of the loop. `None` while it makes progress or has nothing to do.
    fn stall(&self) -> Option<Stall>;

    /// The keys that are held back.
    fn held(&self) -> HeldKeys;
}

impl Stall {
    /// A stall, if `duration` is that long.
    pub(crate) fn after(least: Duration, key: &(impl ToString + ?Sized), duration: Duration) -> Option<Self> {
        (duration >= least).then(|| Self { key: key.to_string(), duration })
    }
}

/// The runs of periodic work.
#[derive(Debug)]
pub(crate) struct Runs {
    period: Duration,
    /// When the last run began, or the loop.
    began: Mutex<Instant>,
}

impl Runs {
    pub(crate) fn every(period: Duration) -> Self {
        Self { period, began: Mutex::new(Instant::now()) }
    }

    /// A run begins, or the loop, which runs soon.
    pub(crate) fn begin(&self) {
        *self.began.lock() = Instant::now();
    }
}

impl Progress for Runs {
    fn stall(&self) -> Option<Stall> {
        let least = self.period.saturating_mul(3).saturating_add(STALLED_AFTER);
        Stall::after(least, "its next run", self.began.lock().elapsed())
    }

    fn held(&self) -> HeldKeys {
        HeldKeys::default()
    }
}
