//! The fence of writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request};
use tokio::time::Instant;

/// A fence between the clients of a manager and the API server: while it is closed, no write is sent.
///
/// Events are no such writes: they are sent all the time.
///
/// A manager that may lose its lease keeps it open until the time at which another may act. Cheap to clone; all clones are
/// one fence.
///
/// # Guarantees
/// No request but a `GET` is sent after [`close`](Self::close) has returned or the time of
/// [`open_until`](Self::open_until) has passed, even if it waited for a rate limit, for a repetition or for its
/// connection at the time: a write passes the fence again when its connection sends the body. A write whose response is
/// awaited at that time is given up, unless the fence was opened for longer meanwhile. It was sent, and may still take
/// effect.
#[derive(Debug, Clone)]
pub struct Fence {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    epoch: Instant,
    /// Nanoseconds after the epoch: until when writes are sent.
    until: AtomicU64,
}

const CLOSED: u64 = 0;
const OPEN: u64 = u64::MAX;

impl Default for Fence {
    /// Returns a fence that is open.
    fn default() -> Self {
        Self { state: Arc::new(State { epoch: Instant::now(), until: AtomicU64::new(OPEN) }) }
    }
}

/// The reason why a write is not sent while the [`Fence`] is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this manager sends no writes at present, as another may act in its place")]
pub struct Fenced;

impl Fence {
    /// Sends no further write until [`open`](Self::open).
    pub fn close(&self) {
        self.state.until.store(CLOSED, Ordering::SeqCst);
    }

    /// Sends all writes again, without a limit.
    pub fn open(&self) {
        self.state.until.store(OPEN, Ordering::SeqCst);
    }

    /// Sends writes until `time`, and none after it unless it is opened again.
    pub fn open_until(&self, time: Instant) {
        self.state.until.store(self.nanoseconds(time), Ordering::SeqCst);
    }

    /// Returns `true` if writes are held back.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.until() <= Instant::now()
    }

    /// Time for which writes are still sent, zero while it is closed. `None` without a limit.
    #[must_use]
    pub fn open_for(&self) -> Option<Duration> {
        let is_limited = self.state.until.load(Ordering::SeqCst) != OPEN;
        is_limited.then(|| self.until().saturating_duration_since(Instant::now()))
    }

    /// Checks a request right before it is sent, and returns by when its response must have arrived, unless the fence is
    /// opened for longer meanwhile.
    pub(crate) fn limit(&self, method: &Method, deadline: Instant) -> Result<Instant, Fenced> {
        if *method == Method::GET {
            return Ok(deadline);
        }
        let until = self.until();
        if until <= Instant::now() { Err(Fenced) } else { Ok(deadline.min(until)) }
    }

    /// Marks a write, so that it passes the fence once more when its connection sends it.
    pub(crate) fn mark<B>(&self, request: &mut Request<B>) {
        if *request.method() != Method::GET {
            request.extensions_mut().insert(self.clone());
        }
    }

    /// Time until which writes are sent.
    pub(crate) fn until(&self) -> Instant {
        match self.state.until.load(Ordering::SeqCst) {
            // No request waits a year.
            OPEN => Instant::now() + Duration::from_hours(24 * 365),
            nanoseconds => self.state.epoch + Duration::from_nanos(nanoseconds),
        }
    }

    fn nanoseconds(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.state.epoch).as_nanos()).unwrap_or(OPEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_waits_no_longer_than_the_fence_is_open() {
        let fence = Fence::default();
        let deadline = Instant::now() + Duration::from_secs(34);
        assert_eq!(fence.limit(&Method::POST, deadline), Ok(deadline));
        let until = Instant::now() + Duration::from_secs(10);
        assert_eq!(fence.open_for(), None);
        fence.open_until(until);
        assert_eq!(fence.open_for(), Some(Duration::from_secs(10)));
        assert_eq!(fence.limit(&Method::POST, deadline), Ok(until));
        assert_eq!(fence.limit(&Method::GET, deadline), Ok(deadline));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(fence.is_closed());
        assert_eq!(fence.open_for(), Some(Duration::ZERO));
        assert_eq!(fence.limit(&Method::PUT, deadline), Err(Fenced));
        assert_eq!(fence.limit(&Method::GET, deadline), Ok(deadline));
        fence.open();
        assert_eq!(fence.limit(&Method::PUT, deadline), Ok(deadline));
        fence.close();
        assert_eq!(fence.limit(&Method::DELETE, deadline), Err(Fenced));
    }
}
