//! How long to wait before a failed controller is tried again.

use std::time::Duration;

/// Doubles from a first delay to a longest one, and starts over after a run that lasted long enough to be healthy.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// The delay after the first failure.
    pub(crate) const FIRST: Duration = Duration::from_secs(1);
    /// The longest delay.
    pub(crate) const LONGEST: Duration = Duration::from_mins(1);
    /// A run this long counts as healthy.
    pub(crate) const HEALTHY: Duration = Duration::from_mins(2);

    /// No failure yet.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self { next: Self::FIRST }
    }

    /// The delay after a failure of something that had run for `ran`.
    pub(crate) fn after(&mut self, ran: Duration) -> Duration {
        if ran >= Self::HEALTHY {
            self.next = Self::FIRST;
        }
        let delay = self.next;
        self.next = (delay * 2).min(Self::LONGEST);
        delay
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_longest_and_starts_over_after_a_healthy_run() {
        let mut backoff = Backoff::new();
        let short = Duration::from_secs(1);
        let delays: Vec<u64> = (0..8).map(|_| backoff.after(short).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.after(Backoff::HEALTHY), Backoff::FIRST);
        assert_eq!(backoff.after(short).as_secs(), 2);
    }
}
