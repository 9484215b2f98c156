//! The fence of writes of a manager that acts under several leases.

use std::sync::Arc;

use kcm_framework::client::Fence;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The writes that one lease allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// Nothing runs under the lease: it limits no write.
    Unlimited,
    /// Writes are sent until this time.
    Until(Instant),
    /// No write is sent.
    Closed,
}

/// The fence of a manager, which is open until the first of its leases ends. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(crate) struct Fences {
    inner: Arc<Inner>,
}

struct Inner {
    fence: Fence,
    limits: Mutex<Vec<Limit>>,
}

/// The part of the fence for one lease, which the lease's thread updates.
#[derive(Clone)]
pub(crate) struct LeaseFence {
    inner: Arc<Inner>,
    at: usize,
}

impl Fences {
    /// The fence, closed by its main lease, and that lease's part of it.
    pub(crate) fn new(fence: Fence) -> (Self, LeaseFence) {
        fence.close();
        let inner = Arc::new(Inner { fence, limits: Mutex::new(vec![Limit::Closed]) });
        (Self { inner: Arc::clone(&inner) }, LeaseFence { inner, at: 0 })
    }

    /// The part of a further lease, which limits nothing until it is acquired.
    pub(crate) fn of_another_lease(&self) -> LeaseFence {
        let mut limits = self.inner.limits.lock();
        limits.push(Limit::Unlimited);
        LeaseFence { inner: Arc::clone(&self.inner), at: limits.len() - 1 }
    }

    /// Sends no further write, even if the leases allow it. The responses of writes that have been sent are awaited.
    pub(crate) fn close(&self) {
        self.inner.fence.end();
    }
}

impl LeaseFence {
    /// The lease allows writes until `time`.
    pub(super) fn open_until(&self, time: Instant) {
        self.change(|_| Limit::Until(time));
    }

    /// Closes the fence because the lease is lost. Changes nothing if nothing runs under the lease.
    pub(super) fn close(&self) {
        self.change(|limit| match limit {
            Limit::Unlimited => Limit::Unlimited,
            Limit::Until(_) | Limit::Closed => Limit::Closed,
        });
    }

    /// Lifts the limit of the lost lease, because nothing runs under it any more. Changes nothing if it was acquired
    /// again.
    pub(super) fn lift(&self) {
        self.change(|limit| match limit {
            Limit::Unlimited | Limit::Closed => Limit::Unlimited,
            Limit::Until(time) => Limit::Until(time),
        });
    }

    fn change(&self, new: impl FnOnce(Limit) -> Limit) {
        let Inner { fence, limits } = &*self.inner;
        // Under the lock, so that the last change decides.
        let mut limits = limits.lock();
        limits[self.at] = new(limits[self.at]);
        match least(&limits) {
            Limit::Unlimited => fence.open(),
            Limit::Until(time) => fence.open_until(time),
            Limit::Closed => fence.close(),
        }
    }
}

/// Returns the writes that all leases together allow.
fn least(limits: &[Limit]) -> Limit {
    limits.iter().fold(Limit::Unlimited, |least, limit| match (least, *limit) {
        (Limit::Closed, _) | (_, Limit::Closed) => Limit::Closed,
        (Limit::Unlimited, other) | (other, Limit::Unlimited) => other,
        (Limit::Until(one), Limit::Until(other)) => Limit::Until(one.min(other)),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_fence_is_open_until_the_first_lease_ends() {
        let fence = Fence::default();
        let (fences, main) = Fences::new(fence.clone());
        assert!(fence.is_closed());
        let migration = fences.of_another_lease();
        assert!(fence.is_closed(), "a lease that limits nothing opens nothing");
        let seconds = |seconds| Instant::now() + Duration::from_secs(seconds);
        main.open_until(seconds(10));
        migration.open_until(seconds(5));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(!fence.is_closed());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(fence.is_closed());
        migration.close();
        assert!(fence.is_closed(), "what ran under the lease may still write");
        migration.lift();
        assert!(!fence.is_closed(), "the main lease is held for another 5 s");
        migration.close();
        assert!(!fence.is_closed(), "nothing runs under a lease that was lifted");
        migration.open_until(seconds(1));
        migration.lift();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(fence.is_closed(), "a lease that is held is not lifted");
        main.close();
        migration.open_until(seconds(10));
        assert!(fence.is_closed());
        main.open_until(seconds(10));
        assert!(!fence.is_closed());
        fences.close();
        main.open_until(seconds(20));
        assert!(fence.is_closed(), "no renewal opens it again");
    }
}
