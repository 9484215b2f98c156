//! The client-side rate limiter: at most `burst` requests at once, `qps` a second over time.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The rate limit of one client, as `--kube-api-qps` and `--kube-api-burst` give them.
///
/// # Upstream
/// client-go: a rate of 0 means 5, a burst of 0 means 10, a negative rate means no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Requests a second over time.
    pub qps: f32,
    /// Largest number of requests at once.
    pub burst: u32,
}

impl Limits {
    /// Limits that never delay a request.
    pub const UNLIMITED: Self = Self { qps: -1.0, burst: 1 };

    /// The rate and the burst, with client-go's defaults for zeros; none without a limit.
    fn resolved(self) -> Option<(f64, u32)> {
        const DEFAULT_QPS: f32 = 5.0;
        const DEFAULT_BURST: u32 = 10;
        let qps = if self.qps == 0.0 { DEFAULT_QPS } else { self.qps };
        let burst = if self.burst == 0 { DEFAULT_BURST } else { self.burst };
        // So that NaN means no limit, as in client-go.
        (qps > 0.0).then(|| (f64::from(qps), burst))
    }
}

impl Default for Limits {
    /// # Upstream
    /// The defaults of `--kube-api-qps` and `--kube-api-burst`.
    fn default() -> Self {
        Self { qps: 20.0, burst: 30 }
    }
}

/// A token bucket, without clock and without waiting.
///
/// Times are durations since any fixed point. Tokens accrue continuously, so that at time `t` exactly
/// `burst + qps × t` reservations have come due.
#[derive(Debug)]
pub struct TokenBucket {
    qps: f64,
    burst: f64,
    // Negative while reservations are waiting.
    left: f64,
    counted_at: Duration,
    due_last: Duration,
}

impl TokenBucket {
    /// A rate limiter with a full bucket.
    #[must_use]
    pub fn new(qps: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { qps, burst, left: burst, counted_at: Duration::ZERO, due_last: Duration::ZERO }
    }

    fn accrue(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.counted_at);
        self.left = (self.left + elapsed.as_secs_f64() * self.qps).min(self.burst);
        self.counted_at = self.counted_at.max(now);
    }

    /// Changes the limits. Tokens that have accrued stay, up to the new burst, and what is reserved stays due when it is.
    fn set(&mut self, qps: f64, burst: u32, now: Duration) {
        self.accrue(now);
        (self.qps, self.burst) = (qps, f64::from(burst));
        self.left = self.left.min(self.burst);
    }

    /// Takes a token if there is one.
    pub fn try_take(&mut self, now: Duration) -> bool {
        self.accrue(now);
        let is_there = self.left >= 1.0;
        if is_there {
            self.left -= 1.0;
        }
        is_there
    }

    /// Takes a token that may not have accrued yet; returns when it is due.
    fn reserve(&mut self, now: Duration) -> Duration {
        self.accrue(now);
        self.left -= 1.0;
        let wait = if self.left < 0.0 { -self.left / self.qps } else { 0.0 };
        let due = now.saturating_add(Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX));
        self.due_last = due;
        due
    }

    /// Returns a token that was not used, unless a later reservation depends on it.
    fn cancel(&mut self, due: Duration, now: Duration) {
        if due <= now || due != self.due_last {
            return;
        }
        self.accrue(now);
        self.left = (self.left + 1.0).min(self.burst);
        let before = Duration::try_from_secs_f64(1.0 / self.qps).map_or(now, |one| due.saturating_sub(one));
        self.due_last = before.max(now);
    }
}

/// The rate limiter of one client: a token bucket that its requests share.
///
/// # Upstream
/// `golang.org/x/time/rate` as client-go uses it: first come, first served; a cancelled wait returns its
/// token unless a later request has reserved.
#[derive(Debug)]
pub struct RateLimiter {
    start: Instant,
    /// None without a limit.
    state: Mutex<Option<TokenBucket>>,
}

impl RateLimiter {
    /// A rate limiter with a full bucket.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let state = limits.resolved().map(|(qps, burst)| TokenBucket::new(qps, burst));
        Self { start: Instant::now(), state: Mutex::new(state) }
    }

    /// Changes the limits for all requests from now on. A request that waits already keeps its turn.
    ///
    /// # Upstream
    /// `SetLimit` and `SetBurst` of `golang.org/x/time/rate`.
    pub fn set_limits(&self, limits: Limits) {
        let now = self.start.elapsed();
        let mut state = self.state.lock();
        match (limits.resolved(), state.as_mut()) {
            (Some((qps, burst)), Some(bucket)) => bucket.set(qps, burst, now),
            (Some((qps, burst)), None) => {
                *state = Some(TokenBucket { counted_at: now, ..TokenBucket::new(qps, burst) });
            }
            (None, _) => *state = None,
        }
    }

    /// Waits for a token and takes it; returns how long it waited.
    ///
    /// # Cancellation
    /// Dropping the future returns the token unless a later request waits.
    pub async fn acquire(&self) -> Duration {
        let now = self.start.elapsed();
        let Some(due) = self.state.lock().as_mut().map(|bucket| bucket.reserve(now)) else { return Duration::ZERO };
        if due <= now {
            return Duration::ZERO;
        }
        let mut waiting = Waiting { limiter: self, due, over: false };
        match self.start.checked_add(due) {
            Some(due) => tokio::time::sleep_until(due).await,
            // Beyond the range of the clock.
            None => std::future::pending().await,
        }
        waiting.over = true;
        due.saturating_sub(now)
    }
}

struct Waiting<'a> {
    limiter: &'a RateLimiter,
    due: Duration,
    over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.over {
            let now = self.limiter.start.elapsed();
            if let Some(bucket) = self.limiter.state.lock().as_mut() {
                bucket.cancel(self.due, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::StreamExt;
    use futures::stream::FuturesUnordered;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn check(name: &str, qps: f64, burst: u32, reserve_at: &[u64], due_at: &[u64]) {
        let mut state = TokenBucket::new(qps, burst);
        let due: Vec<_> = reserve_at.iter().map(|&at| state.reserve(Duration::from_millis(at))).collect();
        let expected: Vec<_> = due_at.iter().map(|&at| Duration::from_millis(at)).collect();
        assert_eq!(due, expected, "{name}");
    }

    #[test]
    fn reservations_come_due_as_tokens_accrue() {
        check("the burst is there at once", 10.0, 3, &[0, 0, 0], &[0, 0, 0]);
        check("then one per interval, in order", 10.0, 2, &[0, 0, 0, 0, 50], &[0, 0, 100, 200, 300]);
        check(
            "an idle bucket fills up to the burst only",
            10.0,
            2,
            &[0, 0, 9000, 9000, 9000],
            &[0, 0, 9000, 9000, 9100],
        );
        check("half a token counts", 10.0, 1, &[0, 50], &[0, 100]);
        check("a burst of one", 4.0, 1, &[0, 0, 1000], &[0, 250, 1000]);
        check("less than one a second", 0.5, 1, &[0, 0, 0], &[0, 2000, 4000]);
    }

    #[test]
    fn a_cancelled_reservation_returns_its_token_unless_others_queue_behind_it() {
        let mut state = TokenBucket::new(1.0, 1);
        assert_eq!(state.reserve(Duration::ZERO), Duration::ZERO);
        let last = state.reserve(Duration::ZERO);
        assert_eq!(last, SECOND);
        state.cancel(last, Duration::ZERO);
        let again = state.reserve(Duration::ZERO);
        assert_eq!(again, SECOND, "the token came back");
        let behind = state.reserve(Duration::ZERO);
        state.cancel(again, Duration::ZERO);
        assert_eq!(state.reserve(Duration::ZERO), behind + SECOND, "the one behind keeps its place");
    }

    async fn passed_after(limits: Limits, requests: u32, elapsed: Duration) -> u32 {
        let limiter = Arc::new(RateLimiter::new(limits));
        let passed = AtomicU32::new(0);
        let mut all: FuturesUnordered<_> = (0..requests)
            .map(|_| async {
                limiter.acquire().await;
                passed.fetch_add(1, Ordering::Relaxed);
            })
            .collect();
        let end = tokio::time::sleep(elapsed);
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                Some(()) = all.next() => {}
                () = &mut end => return passed.load(Ordering::Relaxed),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn exactly_burst_plus_rate_times_time_requests_pass() {
        let limits = Limits { qps: 20.0, burst: 30 };
        for (millis, passed) in [(0, 30), (49, 30), (50, 31), (99, 31), (1000, 50), (4999, 129), (5000, 130)] {
            assert_eq!(passed_after(limits, 500, Duration::from_millis(millis)).await, passed, "after {millis} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_negative_rate_limits_nothing_and_zeros_mean_client_gos_defaults() {
        assert_eq!(passed_after(Limits::UNLIMITED, 1000, Duration::ZERO).await, 1000);
        assert_eq!(passed_after(Limits { qps: 0.0, burst: 0 }, 1000, SECOND).await, 15);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_comes_after_the_end_of_all_clocks_is_waited_for() {
        let limiter = RateLimiter::new(Limits { qps: 1e-30, burst: 1 });
        limiter.acquire().await;
        let a_year = 365 * 24 * 3600 * SECOND;
        assert!(tokio::time::timeout(a_year, limiter.acquire()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn says_how_long_a_request_waited() {
        let limiter = RateLimiter::new(Limits { qps: 2.0, burst: 1 });
        assert_eq!(limiter.acquire().await, Duration::ZERO);
        assert_eq!(limiter.acquire().await, SECOND / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_wait_gives_its_token_back() {
        let limiter = RateLimiter::new(Limits { qps: 1.0, burst: 1 });
        limiter.acquire().await;
        assert!(tokio::time::timeout(SECOND / 2, limiter.acquire()).await.is_err());
        tokio::time::sleep(SECOND / 2).await;
        assert_eq!(limiter.acquire().await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn changed_limits_count_from_the_next_request_on() {
        let limiter = RateLimiter::new(Limits { qps: 1.0, burst: 1 });
        assert_eq!(limiter.acquire().await, Duration::ZERO);
        assert_eq!(limiter.acquire().await, SECOND);
        limiter.set_limits(Limits { qps: 10.0, burst: 5 });
        // What had not accrued by then has not accrued.
        assert_eq!(limiter.acquire().await, SECOND / 10);
        tokio::time::sleep(SECOND).await;
        for _ in 0..5 {
            assert_eq!(limiter.acquire().await, Duration::ZERO);
        }
        assert_eq!(limiter.acquire().await, SECOND / 10);
        limiter.set_limits(Limits::UNLIMITED);
        for _ in 0..100 {
            assert_eq!(limiter.acquire().await, Duration::ZERO);
        }
        limiter.set_limits(Limits { qps: 1.0, burst: 2 });
        assert_eq!([limiter.acquire().await, limiter.acquire().await], [Duration::ZERO; 2]);
        assert_eq!(limiter.acquire().await, SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waits_keeps_its_turn_when_limits_change() {
        let limiter = RateLimiter::new(Limits { qps: 1.0, burst: 1 });
        limiter.acquire().await;
        let change = async {
            tokio::time::sleep(SECOND / 2).await;
            limiter.set_limits(Limits::UNLIMITED);
        };
        let (waited, ()) = tokio::join!(limiter.acquire(), change);
        assert_eq!(waited, SECOND);
    }
}
