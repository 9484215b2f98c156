//! The fences of writes of a manager that acts under several leases.
//!
//! The clients of the controllers that a lease covers pass the fence of that lease. So a lost lease stops no writes of
//! controllers that run under another.

use std::sync::Arc;

use kcm_framework::client::{ElapsedClock, Fence};

/// Closes the fence of the controllers that a lease covers. It is opened while the lease is held by `clock`.
pub(super) fn closed_for_lease(fence: Fence, clock: Arc<dyn ElapsedClock>) -> Fence {
    fence.close();
    fence.measure_with(clock);
    fence
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kcm_framework::client::SimulatedElapsed;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fence_is_open_while_its_lease_is_held_and_no_renewal_opens_it_after_its_end() {
        let (fence, clock) = (Fence::default(), SimulatedElapsed::starting_now());
        let lease = closed_for_lease(fence.clone(), Arc::new(clock.clone()));
        let seconds = |seconds| clock.now() + Duration::from_secs(seconds);
        assert!(fence.is_closed());
        lease.open_until_mark(seconds(5));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(!fence.is_closed());
        clock.suspend(Duration::from_secs(1));
        assert!(fence.is_closed());
        lease.open_until_mark(seconds(5));
        lease.close();
        assert!(fence.is_closed());
        lease.open_until_mark(seconds(5));
        assert!(!fence.is_closed());
        lease.end();
        lease.open_until_mark(seconds(20));
        assert!(fence.is_closed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_lease_stops_no_writes_under_another() {
        let clock = Arc::new(SimulatedElapsed::starting_now());
        let (main, migration) = (Fence::default(), Fence::default());
        let until = clock.now() + Duration::from_secs(10);
        let leases = [&main, &migration].map(|fence| closed_for_lease(fence.clone(), clock.clone()));
        for lease in &leases {
            lease.open_until_mark(until);
        }
        leases[1].close();
        assert_eq!((main.is_closed(), migration.is_closed()), (false, true));
    }
}
