//! The wait for a response.

use std::pin::Pin;

use tokio::time::{Instant, timeout_at};

use super::fence::Fence;
use super::request::Cause;

/// The wait for the response to one attempt of a request: until its deadline, and for a write no longer than the fence
/// stays open.
///
/// A fence that is opened for longer meanwhile prolongs the wait: the lease is renewed every two seconds, while an
/// admission webhook may take ten.
pub(crate) struct ResponseWait<'a> {
    fence: &'a Fence,
    begun: Instant,
    deadline: Instant,
    /// Time at which the wait ends, unless the fence is open for longer by then.
    until: Instant,
}

impl<'a> ResponseWait<'a> {
    /// A wait that began at `begun` and ends at `until`, or at `deadline` if the fence stays open.
    pub(crate) const fn new(fence: &'a Fence, begun: Instant, deadline: Instant, until: Instant) -> Self {
        Self { fence, begun, deadline, until }
    }

    /// Waits for the next part of the response, which the caller keeps: a request takes kilobytes.
    ///
    /// # Errors
    /// [`Cause::Timeout`] at the deadline, [`Cause::GivenUp`] when the fence has closed.
    pub(crate) async fn next<F: Future>(&mut self, mut part: Pin<&mut F>) -> Result<F::Output, Cause> {
        loop {
            if let Ok(part) = timeout_at(self.until, part.as_mut()).await {
                return Ok(part);
            }
            if self.until >= self.deadline {
                return Err(Cause::Timeout(self.begun.elapsed()));
            }
            let until = self.fence.until().min(self.deadline);
            if until <= Instant::now() {
                return Err(Cause::GivenUp(self.begun.elapsed()));
            }
            self.until = until;
        }
    }
}
