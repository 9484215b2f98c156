//! The rate limits of retries: back-off of each key, token bucket of all keys.

use std::time::Duration;

/// The rate limits of retries: a failed key waits for its back-off and for the token bucket of all keys, whichever is
/// later.
///
/// # Upstream
/// The default is client-go's `DefaultTypedControllerRateLimiter`: 5 ms doubling to 1000 s, and ten retries a second
/// after a burst of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// The back-off after a key's first failure; each further failure in a row doubles it.
    pub base: Duration,
    /// The longest back-off. A key that keeps failing stays there.
    pub max: Duration,
    /// The time in which the bucket regains one token; zero for no bucket.
    pub interval: Duration,
    /// Number of retries that a full bucket holds.
    pub burst: u32,
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(5),
            max: Duration::from_secs(1000),
            interval: Duration::from_millis(100),
            burst: 100,
        }
    }
}

impl RetryLimits {
    /// The back-off of a key that has failed `failures` times in a row.
    ///
    /// By default: 5 ms after the first failure, 20 ms after the third, 655.36 s after the 18th, 1000 s from then on.
    pub(crate) fn backoff(&self, failures: u32) -> Duration {
        let factor = 1_u128 << failures.saturating_sub(1).min(127);
        let nanos = self.base.as_nanos().saturating_mul(factor);
        Duration::from_nanos_u128(nanos.min(self.max.as_nanos()))
    }
}

/// A token bucket that returns when a token may be used instead of refusing one.
pub(crate) struct TokenBucket {
    interval: Duration,
    depth: Duration,
    /// The time at which the bucket is full again if no token is taken until then; the whole state of the bucket.
    full_at: Duration,
}

impl TokenBucket {
    pub(crate) fn new(limits: &RetryLimits) -> Self {
        Self { interval: limits.interval, depth: limits.interval.saturating_mul(limits.burst), full_at: Duration::ZERO }
    }

    /// Takes the next token and returns the time from which it may be used.
    pub(crate) fn reserve(&mut self, now: Duration) -> Duration {
        self.full_at = self.full_at.max(now).saturating_add(self.interval);
        self.full_at.saturating_sub(self.depth).max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_from_the_base_to_the_longest() {
        let backoff = |failures| RetryLimits::default().backoff(failures);
        assert_eq!(backoff(1), Duration::from_millis(5));
        assert_eq!(backoff(2), Duration::from_millis(10));
        assert_eq!(backoff(3), Duration::from_millis(20));
        assert_eq!(backoff(18), Duration::from_millis(655_360));
        assert_eq!(backoff(19), Duration::from_secs(1000));
        assert_eq!(backoff(u32::MAX), Duration::from_secs(1000));
    }

    #[test]
    fn a_base_of_zero_stays_zero_and_a_huge_one_stays_at_the_longest() {
        let limits = RetryLimits { base: Duration::ZERO, ..RetryLimits::default() };
        assert_eq!(limits.backoff(u32::MAX), Duration::ZERO);
        let limits = RetryLimits { base: Duration::MAX, ..RetryLimits::default() };
        assert_eq!(limits.backoff(1), limits.max);
        assert_eq!(limits.backoff(u32::MAX), limits.max);
    }

    #[test]
    fn the_bucket_gives_its_burst_at_once_and_then_one_per_interval() {
        let mut bucket = TokenBucket::new(&RetryLimits { burst: 2, ..RetryLimits::default() });
        let mut reserve = |millis| bucket.reserve(Duration::from_millis(millis)).as_millis();
        assert_eq!([reserve(0), reserve(0)], [0, 0]);
        assert_eq!([reserve(0), reserve(0)], [100, 200]);
        assert_eq!(reserve(150), 300);
        assert_eq!(
            [reserve(10_000), reserve(10_000), reserve(10_000)],
            [10_000, 10_000, 10_100],
            "never fuller than full"
        );
    }

    #[test]
    fn an_interval_of_zero_never_holds_up() {
        let mut bucket =
            TokenBucket::new(&RetryLimits { interval: Duration::ZERO, burst: 0, ..RetryLimits::default() });
        assert!((0..1000).all(|_| bucket.reserve(Duration::from_secs(1)) == Duration::from_secs(1)));
    }
}
