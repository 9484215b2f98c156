//! The fence of writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Method, Request};
use tokio::time::Instant;

use super::elapsed::{ElapsedClock, Mark};

/// A fence between the clients of a manager and the API server: while it is closed, no write is sent.
///
/// Events are no such writes: they are sent all the time.
///
/// A manager that may lose its lease keeps it open until the time at which another may act. Cheap to clone; all clones are
/// one fence.
///
/// # Guarantees
/// No request but a `GET` is sent after [`close`](Self::close) has returned or the time of
/// [`open_until`](Self::open_until) has passed on the clock of [`measure_with`](Self::measure_with), even if it waited
/// for a rate limit, for a repetition or for its connection at the time: a write passes the fence again when its
/// connection sends the body. A request that is waited for at that time is given up. It was sent, and may still take
/// effect.
#[derive(Debug, Clone)]
pub struct Fence {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    epoch: Instant,
    /// The clock of the lease. Without it, time is tokio's since the epoch.
    clock: OnceLock<Arc<dyn ElapsedClock>>,
    /// Nanoseconds of the clock: until when writes are sent.
    until: AtomicU64,
}

const CLOSED: u64 = 0;
const OPEN: u64 = u64::MAX;

impl Default for Fence {
    /// Returns a fence that is open.
    fn default() -> Self {
        Self { state: Arc::new(State { epoch: Instant::now(), clock: OnceLock::new(), until: AtomicU64::new(OPEN) }) }
    }
}

/// The reason why a write is not sent while the [`Fence`] is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this manager sends no writes at present, as another may act in its place")]
pub struct Fenced;

impl Fence {
    /// Measures the time of [`open_until`](Self::open_until) with a clock that also moves while the machine is suspended.
    /// The first call counts, and comes before the fence is opened for a time.
    pub fn measure_with(&self, clock: Arc<dyn ElapsedClock>) {
        self.state.clock.get_or_init(|| clock);
    }

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
        // In this order: a process that is stopped between the two must not gain time.
        let now = self.now();
        self.open_until_mark(now + time.saturating_duration_since(Instant::now()));
    }

    /// As [`open_until`](Self::open_until), on the clock of [`measure_with`](Self::measure_with).
    pub fn open_until_mark(&self, time: Mark) {
        let nanoseconds = u64::try_from(time.since_start().as_nanos()).unwrap_or(OPEN);
        self.state.until.store(nanoseconds, Ordering::SeqCst);
    }

    /// Returns `true` if writes are held back.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.remaining().is_zero()
    }

    /// Checks a request right before it is sent, and returns by when its response must have arrived.
    pub(crate) fn limit(&self, method: &Method, deadline: Instant) -> Result<Instant, Fenced> {
        if *method == Method::GET {
            return Ok(deadline);
        }
        let remaining = self.remaining();
        if remaining.is_zero() { Err(Fenced) } else { Ok(deadline.min(Instant::now() + remaining)) }
    }

    /// Marks a write, so that it passes the fence once more when its connection sends it.
    pub(crate) fn mark<B>(&self, request: &mut Request<B>) {
        if *request.method() != Method::GET {
            request.extensions_mut().insert(self.clone());
        }
    }

    /// The time for which writes are still sent.
    fn remaining(&self) -> Duration {
        match self.state.until.load(Ordering::SeqCst) {
            // No request waits a year.
            OPEN => Duration::from_hours(24 * 365),
            nanoseconds => Mark::after(Duration::from_nanos(nanoseconds)).saturating_duration_since(self.now()),
        }
    }

    fn now(&self) -> Mark {
        self.state.clock.get().map_or_else(|| Mark::after(self.state.epoch.elapsed()), |clock| clock.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elapsed::SimulatedElapsed;

    #[tokio::test(start_paused = true)]
    async fn a_write_waits_no_longer_than_the_fence_is_open() {
        let fence = Fence::default();
        let deadline = Instant::now() + Duration::from_secs(34);
        assert_eq!(fence.limit(&Method::POST, deadline), Ok(deadline));
        let until = Instant::now() + Duration::from_secs(10);
        fence.open_until(until);
        assert_eq!(fence.limit(&Method::POST, deadline), Ok(until));
        assert_eq!(fence.limit(&Method::GET, deadline), Ok(deadline));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(fence.is_closed());
        assert_eq!(fence.limit(&Method::PUT, deadline), Err(Fenced));
        assert_eq!(fence.limit(&Method::GET, deadline), Ok(deadline));
        fence.open();
        assert_eq!(fence.limit(&Method::PUT, deadline), Ok(deadline));
        fence.close();
        assert_eq!(fence.limit(&Method::DELETE, deadline), Err(Fenced));
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_was_suspended_sends_no_writes_after_the_end_of_its_lease() {
        let (fence, clock) = (Fence::default(), SimulatedElapsed::starting_now());
        fence.measure_with(Arc::new(clock.clone()));
        fence.open_until(Instant::now() + Duration::from_secs(10));
        clock.suspend(Duration::from_secs(4));
        let deadline = Instant::now() + Duration::from_secs(34);
        assert_eq!(fence.limit(&Method::POST, deadline), Ok(Instant::now() + Duration::from_secs(6)));
        clock.suspend(Duration::from_secs(6));
        assert!(fence.is_closed());
        assert_eq!(fence.limit(&Method::POST, deadline), Err(Fenced));
        fence.open_until_mark(clock.now() + Duration::from_secs(1));
        assert!(!fence.is_closed());
    }
}
