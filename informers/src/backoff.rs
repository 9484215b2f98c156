//! Exponential back-off.

use std::time::Duration;

/// An exponential back-off: each delay is twice the previous delay, up to a maximum.
///
/// It starts again after a failure that follows a long enough healthy time, and when it is reset.
#[derive(Debug, Clone)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    reset_after: Duration,
    next: Duration,
}

impl Backoff {
    /// A back-off from `initial` to `max` that starts over after a healthy time of `reset_after`.
    #[must_use]
    pub const fn new(initial: Duration, max: Duration, reset_after: Duration) -> Self {
        Self { initial, max, reset_after, next: initial }
    }

    /// The delay after a failure that follows a healthy time of `healthy_for`.
    pub fn delay_after(&mut self, healthy_for: Duration) -> Duration {
        if healthy_for >= self.reset_after {
            self.reset();
        }
        self.next_delay()
    }

    /// The delay after a failure.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(self.max);
        delay
    }

    /// Starts again with the shortest delay.
    pub const fn reset(&mut self) {
        self.next = self.initial;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn doubles_up_to_the_longest_and_starts_over_after_a_healthy_time() {
        let mut backoff = Backoff::new(seconds(1), seconds(60), seconds(120));
        let delays: Vec<u64> = (0..8).map(|_| backoff.delay_after(seconds(1)).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.clone().delay_after(seconds(119)), seconds(60));
        assert_eq!(backoff.delay_after(seconds(120)), seconds(1));
        assert_eq!(backoff.delay_after(seconds(1)), seconds(2));
        backoff.reset();
        assert_eq!(backoff.next_delay(), seconds(1));
    }
}
