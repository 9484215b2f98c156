//! Detects loops that make no progress.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
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

/// The steps of a task, by which a task that hangs is found: the task is stalled if none of its steps has ended for two
/// minutes while one is under way.
///
/// A task that waits for work has no step under way. Each step costs a map entry with its name. Cheap to clone; all clones
/// are one.
///
/// ```
/// use kcm_framework::{Loops, Steps};
///
/// async fn copy_to(_: &str) {}
///
/// let steps = Steps::default();
/// let of_task = steps.clone();
/// let loops = Loops::new().task("copies", move |cancel| {
///     let steps = of_task.clone();
///     Box::pin(async move {
///         let copying = async {
///             for target in ["a", "b"] {
///                 let _step = steps.begin(target);
///                 copy_to(target).await;
///             }
///         };
///         cancel.run_until_cancelled(copying).await;
///         Ok(())
///     })
/// });
/// # drop(
/// loops.in_steps(&steps)
/// # );
/// ```
#[derive(Debug, Clone, Default)]
pub struct Steps(Arc<Mutex<UnderWay>>);

/// The steps that are under way, in the order of their beginning.
#[derive(Debug, Default)]
struct UnderWay {
    steps: BTreeMap<u64, (Cow<'static, str>, Instant)>,
    begun: u64,
    last_end: Option<Instant>,
}

impl Steps {
    /// Begins a step, which ends when the value is dropped. Operators see `name` if it does not end.
    pub fn begin(&self, name: impl Into<Cow<'static, str>>) -> Step {
        let under_way = &mut *self.0.lock();
        under_way.begun += 1;
        under_way.steps.insert(under_way.begun, (name.into(), Instant::now()));
        Step { steps: self.clone(), id: under_way.begun }
    }
}

impl Progress for Steps {
    fn stall(&self) -> Option<Stall> {
        let under_way = self.0.lock();
        let (name, began) = under_way.steps.values().next()?;
        let since = under_way.last_end.map_or(*began, |end| end.max(*began));
        Stall::after(STALLED_AFTER, &**name, since.elapsed())
    }

    fn held(&self) -> HeldKeys {
        HeldKeys::default()
    }
}

/// A step of a task, until it is dropped. Made by [`Steps::begin`].
#[derive(Debug)]
#[must_use = "the step ends when it is dropped"]
pub struct Step {
    steps: Steps,
    id: u64,
}

impl Drop for Step {
    fn drop(&mut self) {
        let under_way = &mut *self.steps.0.lock();
        under_way.steps.remove(&self.id);
        under_way.last_end = Some(Instant::now());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_step_that_waits_while_others_end_is_no_stall() {
        let steps = Steps::default();
        let first = steps.begin("first");
        for _ in 0..10 {
            let other = steps.begin("other");
            tokio::time::advance(STALLED_AFTER / 2).await;
            assert_eq!(steps.stall(), None);
            drop(other);
        }
        tokio::time::advance(STALLED_AFTER).await;
        let stall = Stall { key: "first".to_owned(), duration: STALLED_AFTER };
        assert_eq!(steps.stall(), Some(stall));
        drop(first);
        assert_eq!(steps.stall(), None);
    }
}
