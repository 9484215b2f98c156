//! Suspensions of the machine.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::client::{ElapsedClock, Mark};
use tokio::time::Instant;

/// The shortest suspension that counts. Two clocks are not read at the same time.
const SHORTEST: Duration = Duration::from_secs(1);

/// Detects suspensions: the clock of the lease moves on, and tokio's stands still.
pub(super) struct Suspensions {
    clock: Arc<dyn ElapsedClock>,
    last: (Mark, Instant),
}

impl Suspensions {
    /// Detects suspensions from now on.
    pub(super) fn of(clock: Arc<dyn ElapsedClock>) -> Self {
        let last = (clock.now(), Instant::now());
        Self { clock, last }
    }

    /// The length of a suspension since the last call, if there was one of more than a second.
    pub(super) fn since_last(&mut self) -> Option<Duration> {
        let now = (self.clock.now(), Instant::now());
        let (elapsed, awake) = (now.0.saturating_duration_since(self.last.0), now.1 - self.last.1);
        self.last = now;
        elapsed.checked_sub(awake).filter(|suspended| *suspended > SHORTEST)
    }
}

#[cfg(test)]
mod tests {
    use kcm_framework::client::SimulatedElapsed;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_suspension_of_more_than_a_second_is_detected_once() {
        let clock = SimulatedElapsed::starting_now();
        let mut suspensions = Suspensions::of(Arc::new(clock.clone()));
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(suspensions.since_last(), None);
        clock.suspend(SHORTEST);
        assert_eq!(suspensions.since_last(), None);
        clock.suspend(Duration::from_mins(1));
        assert_eq!(suspensions.since_last(), Some(Duration::from_mins(1)));
        assert_eq!(suspensions.since_last(), None);
    }
}
