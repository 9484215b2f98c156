//! How many requests are sent to one API at once.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The setting that limits follow.
pub(super) type Count = Arc<dyn Fn() -> usize + Send + Sync>;

/// A limit of requests that follows a setting, which may change.
pub(super) struct Limit {
    permits: Semaphore,
    /// How many permits there are, those in use included.
    size: Mutex<usize>,
    wanted: Count,
}

impl Limit {
    pub(super) fn new(wanted: Count) -> Self {
        let size = wanted();
        Self { permits: Semaphore::new(size), size: Mutex::new(size), wanted }
    }

    /// Waits until one more request may be sent; the permit is held while it is.
    pub(super) async fn acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.resize();
        // Absent only where the semaphore was closed, which it never is.
        self.permits.acquire().await.ok()
    }

    /// Follows the setting. Permits in use go when a later call finds them free.
    fn resize(&self) {
        let (wanted, mut size) = ((self.wanted)(), self.size.lock());
        if wanted > *size {
            self.permits.add_permits(wanted - *size);
            *size = wanted;
        } else {
            *size -= self.permits.forget_permits(*size - wanted);
        }
    }
}
