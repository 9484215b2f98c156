//! Time that also passes while the machine is suspended.

use std::fmt;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// A point in time of one [`ElapsedClock`]. Marks of different clocks do not compare.
///
/// A lease is kept and lost in such time: other machines do not stop while this one is suspended. Tokio's `Instant` is not
/// for this, because it stands still then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(Duration);

impl Mark {
    /// The point in time that is `elapsed` after the start of the clock.
    #[must_use]
    pub const fn after(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The time since the start of the clock.
    #[must_use]
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// The time since `earlier`, or zero if that is later.
    #[must_use]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Mark {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// A clock that never stands still while others move, as far as the machine can tell.
///
/// Timers use tokio's clock, which does stand still. Read this clock again after waiting for a [`Mark`].
pub trait ElapsedClock: fmt::Debug + Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Mark;
}

/// The clock of the machine since its start.
///
/// # Guarantees
/// It moves while the machine is suspended, and nobody can set it. On Linux it is `CLOCK_BOOTTIME`, which is
/// `CLOCK_MONOTONIC` and the time of all suspensions; elsewhere it is the clock that POSIX calls monotonic.
///
/// It stands still while a virtual machine is paused whose guest's clocks stand still too.
#[derive(Debug, Clone, Copy, Default)]
pub struct BootClock;

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

impl ElapsedClock for BootClock {
    fn now(&self) -> Mark {
        let now = clock_gettime(CLOCK);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        Mark(Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default()))
    }
}

/// A clock that advances with tokio's, so that paused time drives it, and by the suspensions that a test asks for. Cheap to
/// clone; all clones are one clock.
#[derive(Debug, Clone)]
pub struct SimulatedElapsed {
    origin: Instant,
    /// Milliseconds of all suspensions so far.
    suspended: Arc<AtomicU64>,
}

impl SimulatedElapsed {
    /// A clock that starts now.
    #[must_use]
    pub fn starting_now() -> Self {
        Self { origin: Instant::now(), suspended: Arc::default() }
    }

    /// Suspends the machine: time passes, and tokio's clock does not notice.
    pub fn suspend(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.suspended.fetch_add(millis, Ordering::SeqCst);
    }
}

impl ElapsedClock for SimulatedElapsed {
    fn now(&self) -> Mark {
        Mark(self.origin.elapsed() + Duration::from_millis(self.suspended.load(Ordering::SeqCst)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_the_machine_moves_forward_and_not_by_less_than_the_monotonic_clock() {
        let (clock, before) = (BootClock, clock_gettime(ClockId::Monotonic));
        let first = clock.now();
        let since_boot = Duration::new(before.tv_sec.cast_unsigned(), u32::try_from(before.tv_nsec).unwrap());
        assert!(first.since_start() >= since_boot, "{first:?} {since_boot:?}");
        assert!((0..1_000).map(|_| clock.now()).is_sorted());
    }

    #[tokio::test(start_paused = true)]
    async fn simulated_time_advances_with_paused_time_and_with_suspensions() {
        let clock = SimulatedElapsed::starting_now();
        let first = clock.now();
        tokio::time::advance(Duration::from_secs(2)).await;
        clock.clone().suspend(Duration::from_secs(3));
        assert_eq!(clock.now(), first + Duration::from_secs(5));
        assert_eq!(first.saturating_duration_since(clock.now()), Duration::ZERO);
    }
}
