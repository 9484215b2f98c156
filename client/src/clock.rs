//! The injected wall clock.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A wall clock, for times that are written to the API (statuses, leases, events).
///
/// Delays and time-outs use tokio's clock instead, which tests pause.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the current wall time.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the wall clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at a given time and advances with tokio's, so that paused time drives it.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedClock {
    start: Timestamp,
    origin: Instant,
}

impl SimulatedClock {
    /// A clock whose current time is `start`.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: Instant::now() }
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.origin.elapsed()).unwrap_or(SignedDuration::MAX);
        self.start.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn simulated_time_advances_with_paused_time() {
        let start: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let clock = SimulatedClock::starting_at(start);
        assert_eq!(clock.now(), start);
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(clock.now().to_string(), "2026-01-02T03:05:35Z");
    }
}
