//! The fence of writes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Method, Request};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

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
/// connection sends the body, and the connection asks once more before it sends bytes. A write whose response is awaited
/// at that time is given up, unless the fence was opened for longer meanwhile, and its connection is reset. It was sent,
/// and may still take effect.
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
    /// Nanoseconds at the end of that time in which no bytes of writes are sent, and those that were sent are acknowledged.
    reserve: AtomicU64,
    /// Set once no further write may begin, however long the fence is open.
    has_ended: AtomicBool,
    /// Set once the fence is closed or open for a limited time.
    is_limited: AtomicBool,
    changed: Notify,
}

const CLOSED: u64 = 0;
const OPEN: u64 = u64::MAX;

impl Default for Fence {
    /// Returns a fence that is open.
    fn default() -> Self {
        let state = State {
            epoch: Instant::now(),
            clock: OnceLock::new(),
            until: AtomicU64::new(OPEN),
            reserve: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            is_limited: AtomicBool::new(false),
            changed: Notify::new(),
        };
        Self { state: Arc::new(state) }
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

    /// Sends no further write until [`open`](Self::open). Connections of writes are reset.
    pub fn close(&self) {
        self.change(CLOSED);
    }

    /// Sends all writes again, without a limit.
    pub fn open(&self) {
        self.change(OPEN);
    }

    /// Sends writes until `time`, and none after it unless it is opened again.
    pub fn open_until(&self, time: Instant) {
        // In this order: a process that is stopped between the two must not gain time.
        let now = self.now();
        self.open_until_mark(now + time.saturating_duration_since(Instant::now()));
    }

    /// As [`open_until`](Self::open_until), on the clock of [`measure_with`](Self::measure_with).
    pub fn open_until_mark(&self, time: Mark) {
        self.change(u64::try_from(time.since_start().as_nanos()).unwrap_or(OPEN));
    }

    /// Sends no further write, even if the fence is opened again. The responses of writes that were sent may still be
    /// awaited while the fence is open.
    pub fn end(&self) {
        self.state.has_ended.store(true, Ordering::SeqCst);
        self.state.changed.notify_waiters();
    }

    /// Begins no write in the last part of the time for which the fence is [open](Self::open_until), which is `time` long.
    ///
    /// In that time the API server acknowledges what was sent before, or the connection is reset.
    pub fn reserve(&self, time: Duration) {
        self.state.reserve.store(u64::try_from(time.as_nanos()).unwrap_or(OPEN), Ordering::SeqCst);
    }

    /// Returns `true` if writes are held back.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state.has_ended.load(Ordering::SeqCst) || self.is_over()
    }

    /// Time for which writes are still sent, zero while it is closed. `None` without a limit.
    #[must_use]
    pub fn open_for(&self) -> Option<Duration> {
        let is_limited = self.state.until.load(Ordering::SeqCst) != OPEN;
        is_limited.then(|| self.remaining())
    }

    /// Checks a request right before it is sent, and returns by when its response must have arrived, unless the fence is
    /// opened for longer meanwhile.
    pub(crate) fn limit(&self, method: &Method, deadline: Instant) -> Result<Instant, Fenced> {
        if *method == Method::GET {
            return Ok(deadline);
        }
        if self.admits() { Ok(deadline.min(self.until())) } else { Err(Fenced) }
    }

    /// Marks a write, so that it passes the fence once more when its connection sends it.
    pub(crate) fn mark<B>(&self, request: &mut Request<B>) {
        if *request.method() != Method::GET {
            request.extensions_mut().insert(self.clone());
        }
    }

    /// Returns `true` if a write may begin.
    pub(crate) fn admits(&self) -> bool {
        !self.state.has_ended.load(Ordering::SeqCst) && self.passes()
    }

    /// Returns `true` if bytes of writes may be sent.
    pub(crate) fn passes(&self) -> bool {
        self.remaining() > self.reserved()
    }

    /// Returns `true` if the time for which the fence was open has passed: another manager may act.
    pub(crate) fn is_over(&self) -> bool {
        self.remaining().is_zero()
    }

    /// The time of [`reserve`](Self::reserve).
    pub(crate) fn reserved(&self) -> Duration {
        Duration::from_nanos(self.state.reserve.load(Ordering::SeqCst))
    }

    /// Returns `true` if the fence was ever closed or open for a limited time, as the fence of a lease is.
    pub(crate) fn is_limited(&self) -> bool {
        self.state.is_limited.load(Ordering::SeqCst)
    }

    /// Returns `true` if both are clones of one fence.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Waits until the time for which the fence is open has passed.
    pub(crate) async fn over(self) {
        loop {
            // Enabled first, so that no change is missed.
            let mut changed = std::pin::pin!(self.state.changed.notified());
            changed.as_mut().enable();
            if self.is_over() {
                return;
            }
            // Either is a reason to look again.
            drop(timeout_at(self.until(), changed).await);
        }
    }

    /// Waits until bytes of writes may be sent, or never may.
    pub(crate) async fn passable(self) {
        loop {
            let mut changed = std::pin::pin!(self.state.changed.notified());
            changed.as_mut().enable();
            if self.passes() || self.is_over() {
                return;
            }
            drop(timeout_at(self.until(), changed).await);
        }
    }

    fn change(&self, until: u64) {
        if until != OPEN {
            self.state.is_limited.store(true, Ordering::SeqCst);
        }
        self.state.until.store(until, Ordering::SeqCst);
        self.state.changed.notify_waiters();
    }

    /// Time until which writes are sent, if the machine is not suspended meanwhile.
    pub(crate) fn until(&self) -> Instant {
        Instant::now() + self.remaining()
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

    #[tokio::test(start_paused = true)]
    async fn no_write_begins_in_the_reserved_time_and_one_that_was_sent_may_be_answered_in_it() {
        let fence = Fence::default();
        let (begun, seconds) = (Instant::now(), Duration::from_secs);
        fence.reserve(seconds(4));
        fence.open_until(begun + seconds(14));
        let deadline = begun + seconds(34);
        assert_eq!(fence.limit(&Method::POST, deadline), Ok(begun + seconds(14)));
        tokio::time::advance(seconds(10)).await;
        assert_eq!(fence.limit(&Method::POST, deadline), Err(Fenced));
        assert!(!fence.passes() && !fence.is_over() && !fence.is_closed());
        fence.open_until(begun + seconds(24));
        assert_eq!(fence.limit(&Method::POST, deadline), Ok(begun + seconds(24)));
        fence.clone().over().await;
        assert_eq!(begun.elapsed(), seconds(24));
    }

    #[tokio::test(start_paused = true)]
    async fn a_fence_that_has_ended_stays_open_for_responses_alone() {
        let fence = Fence::default();
        let deadline = Instant::now() + Duration::from_secs(34);
        fence.end();
        fence.open_until(Instant::now() + Duration::from_secs(10));
        assert_eq!(fence.limit(&Method::POST, deadline), Err(Fenced));
        assert!(fence.is_closed() && fence.passes() && !fence.is_over());
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(fence.is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_the_fence_ends_when_it_is_closed_or_opened() {
        let fence = Fence::default();
        let begun = Instant::now();
        fence.open_until(begun + Duration::from_secs(10));
        fence.reserve(Duration::from_secs(10));
        let (over, passable) = (fence.clone().over(), fence.clone().passable());
        tokio::pin!(over, passable);
        assert!(futures::poll!(&mut over).is_pending() && futures::poll!(&mut passable).is_pending());
        fence.open_until(begun + Duration::from_secs(20));
        assert!(futures::poll!(&mut over).is_pending() && futures::poll!(&mut passable).is_ready());
        fence.close();
        assert!(futures::poll!(&mut over).is_ready());
        assert_eq!(Instant::now(), begun);
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
