//! The rate at which Nodes of a zone are tainted. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// A bucket for one token, which fills at a rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limiter {
    /// Tokens per second. Zero or less: none.
    rate: f32,
    /// Time at which the next token is there.
    next_at: Instant,
}

impl Limiter {
    /// Creates a bucket with its token.
    pub(super) const fn new(rate: f32, now: Instant) -> Self {
        Self { rate, next_at: now }
    }

    /// Changes the rate. A bucket that is not full begins to fill anew.
    pub(super) fn set_rate(&mut self, rate: f32, now: Instant) {
        if self.rate.to_bits() != rate.to_bits() {
            let is_full = self.is_full(now);
            self.rate = rate;
            self.next_at = if is_full { now } else { self.filled_after(now) };
        }
    }

    /// Returns `true` if there is a token.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        self.rate > 0.0 && self.next_at <= now
    }

    /// Takes a token if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let is_there = self.is_full(now);
        if is_there {
            self.next_at = self.filled_after(now);
        }
        is_there
    }

    fn filled_after(&self, now: Instant) -> Instant {
        if self.rate <= 0.0 {
            return now;
        }
        let wait = Duration::try_from_secs_f32(1.0 / self.rate).unwrap_or(Duration::MAX);
        now.checked_add(wait).unwrap_or(now + Duration::from_secs(u64::from(u32::MAX)))
    }
}
