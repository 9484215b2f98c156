//! The fences of writes of a manager that acts under several leases.
//!
//! The clients of the controllers that a lease covers pass the fence of that lease. So a lost lease stops no writes of
//! controllers that run under another.

use std::sync::Arc;

use kcm_framework::client::{ElapsedClock, Fence, Mark};

/// The fence of the controllers that one lease covers, which the lease's thread opens and closes. Cheap to clone; all
/// clones are one.
#[derive(Clone)]
pub(crate) struct LeaseFence {
    fence: Fence,
}

impl LeaseFence {
    /// Closes a fence, which is opened while the lease is held by `clock`.
    pub(crate) fn new(fence: Fence, clock: Arc<dyn ElapsedClock>) -> Self {
        fence.close();
        fence.measure_with(clock);
        Self { fence }
    }

    /// The lease allows writes until `time`.
    pub(super) fn open_until(&self, time: Mark) {
        self.fence.open_until_mark(time);
    }

    /// Sends no more writes, because the lease is not held.
    pub(super) fn close(&self) {
        self.fence.close();
    }

    /// Sends no more writes, even if the lease is renewed. The responses of writes that have been sent are awaited.
    pub(super) fn end(&self) {
        self.fence.end();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kcm_framework::client::SimulatedElapsed;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fence_is_open_while_its_lease_is_held_and_no_renewal_opens_it_after_its_end() {
        let (fence, clock) = (Fence::default(), SimulatedElapsed::starting_now());
        let lease = LeaseFence::new(fence.clone(), Arc::new(clock.clone()));
        let seconds = |seconds| clock.now() + Duration::from_secs(seconds);
        assert!(fence.is_closed());
        lease.open_until(seconds(5));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(!fence.is_closed());
        clock.suspend(Duration::from_secs(1));
        assert!(fence.is_closed());
        lease.open_until(seconds(5));
        lease.close();
        assert!(fence.is_closed());
        lease.open_until(seconds(5));
        assert!(!fence.is_closed());
        lease.end();
        lease.open_until(seconds(20));
        assert!(fence.is_closed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_lease_stops_no_writes_under_another() {
        let clock = Arc::new(SimulatedElapsed::starting_now());
        let (main, migration) = (Fence::default(), Fence::default());
        let until = clock.now() + Duration::from_secs(10);
        let leases = [&main, &migration].map(|fence| LeaseFence::new(fence.clone(), clock.clone()));
        for lease in &leases {
            lease.open_until(until);
        }
        leases[1].close();
        assert_eq!((main.is_closed(), migration.is_closed()), (false, true));
    }
}
