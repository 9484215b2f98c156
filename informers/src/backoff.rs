//! How long to wait after a failure.

use std::time::Duration;

use crate::jitter::Jitter;

/// Waits that double from 800 ms to 30 s, each stretched by up to as much again.
///
/// # Upstream
/// The reflector's back-off, which forgets after two minutes without failure.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    next: Duration,
    healthy_since: Option<Duration>,
}

impl Backoff {
    pub(crate) const LEAST: Duration = Duration::from_millis(800);
    pub(crate) const MOST: Duration = Duration::from_secs(30);
    pub(crate) const FORGETS_AFTER: Duration = Duration::from_mins(2);

    pub(crate) const fn new() -> Self {
        Self { next: Self::LEAST, healthy_since: None }
    }

    /// The server has answered.
    pub(crate) fn healthy(&mut self, now: Duration) {
        self.healthy_since.get_or_insert(now);
    }

    /// Something failed: how long to wait.
    pub(crate) fn failed(&mut self, now: Duration, jitter: &mut Jitter) -> Duration {
        if self.healthy_since.take().is_some_and(|since| now.saturating_sub(since) >= Self::FORGETS_AFTER) {
            self.next = Self::LEAST;
        }
        let least = self.next;
        self.next = (least * 2).min(Self::MOST);
        jitter.stretch(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn doubles_up_to_half_a_minute() {
        let (mut backoff, mut jitter) = (Backoff::new(), Jitter::new(1));
        for least in [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000] {
            let least = Duration::from_millis(least);
            let drawn = backoff.failed(Duration::ZERO, &mut jitter);
            assert!((least..2 * least).contains(&drawn), "{drawn:?} is not in [{least:?}, {:?})", 2 * least);
        }
    }

    #[test]
    fn forgets_after_two_minutes_of_health_and_not_before() {
        let (mut backoff, mut jitter) = (Backoff::new(), Jitter::new(1));
        for _ in 0..5 {
            backoff.failed(Duration::ZERO, &mut jitter);
        }
        backoff.healthy(seconds(10));
        backoff.healthy(seconds(100));
        assert!(backoff.clone().failed(seconds(129), &mut jitter) > 2 * Backoff::LEAST);
        assert!(backoff.failed(seconds(130), &mut jitter) < 2 * Backoff::LEAST);
    }
}
