//! The heartbeat of the main thread, on which all controllers run.
//!
//! Lease and HTTPS port have threads of their own, so they go on while the main thread is blocked for ever: by an endless
//! loop, a deadlock, or a log that nobody reads. They read the heartbeat, so that such a process does not keep the lease.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Time between two beats, which each wake the main thread once.
const PERIOD: Duration = Duration::from_secs(1);

/// Times for which the main thread may be blocked.
///
/// Both are far above the longest time that a controller needs without a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MainThreadLimits {
    /// Time after which the health check fails.
    pub(crate) unhealthy_after: Duration,
    /// Time after which the process gives up its lease and ends.
    pub(crate) exits_after: Duration,
}

impl Default for MainThreadLimits {
    fn default() -> Self {
        Self { unhealthy_after: Duration::from_secs(30), exits_after: Duration::from_mins(1) }
    }
}

/// The heartbeat of the main thread. Cheap to clone; all clones are one heartbeat.
#[derive(Debug, Clone)]
pub(crate) struct Heartbeat(Arc<State>);

#[derive(Debug)]
struct State {
    epoch: Instant,
    /// Milliseconds after the epoch: time of the last beat.
    last: AtomicU64,
    /// Milliseconds: longest time by which a beat came too late.
    longest: AtomicU64,
}

impl Heartbeat {
    /// The name of the health check.
    pub(crate) const CHECK: &str = "main-thread";

    /// A heartbeat whose first beat is now.
    pub(crate) fn new() -> Self {
        let (last, longest) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(State { epoch: Instant::now(), last, longest }))
    }

    /// Beats for ever. Runs on the thread whose heartbeat this is.
    pub(crate) async fn run(self) -> Infallible {
        loop {
            let blocked = millis(self.blocked());
            self.0.longest.fetch_max(blocked, Ordering::Relaxed);
            self.0.last.store(millis(self.0.epoch.elapsed()), Ordering::Relaxed);
            sleep(PERIOD).await;
        }
    }

    /// Returns the time for which the thread has been blocked: the time by which the next beat is late.
    pub(crate) fn blocked(&self) -> Duration {
        let last = Duration::from_millis(self.0.last.load(Ordering::Relaxed));
        self.0.epoch.elapsed().saturating_sub(last + PERIOD)
    }

    /// Returns the longest time for which the thread has been blocked, including the current time.
    pub(crate) fn longest_blocked(&self) -> Duration {
        self.blocked().max(Duration::from_millis(self.0.longest.load(Ordering::Relaxed)))
    }

    /// Fails once the thread has been blocked for `limit`.
    ///
    /// # Errors
    /// The time for which it has been blocked.
    pub(crate) fn check(&self, limit: Duration) -> Result<(), String> {
        let blocked = self.blocked();
        if blocked < limit {
            return Ok(());
        }
        Err(format!("the thread of the controllers has been blocked for {} s", blocked.as_secs()))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thread_is_blocked_from_the_first_beat_that_is_late() {
        let heartbeat = Heartbeat::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(heartbeat.clone().run());
        let between_beats = Duration::from_millis(500);
        sleep(Duration::from_secs(10) + between_beats).await;
        assert_eq!(heartbeat.longest_blocked(), Duration::ZERO);
        // The task does not run while this one advances the clock.
        advance(between_beats + Duration::from_secs(5)).await;
        assert_eq!(heartbeat.longest_blocked(), Duration::from_secs(5));
        sleep(Duration::from_secs(1)).await;
        assert_eq!((heartbeat.blocked(), heartbeat.longest_blocked()), (Duration::ZERO, Duration::from_secs(5)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_health_check_fails_from_its_limit_on() {
        let heartbeat = Heartbeat::new();
        let limit = Duration::from_secs(30);
        advance((PERIOD + limit).saturating_sub(Duration::from_millis(1))).await;
        assert_eq!(heartbeat.check(limit), Ok(()));
        advance(Duration::from_millis(1)).await;
        let reason = "the thread of the controllers has been blocked for 30 s".to_owned();
        assert_eq!(heartbeat.check(limit), Err(reason));
    }
}
