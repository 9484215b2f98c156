//! Reads of discovery because of a resource that its snapshot lacks.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::client::ApiError;
use kcm_framework::discovery::{Discovery, Resources};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The least time between two reads of discovery because of a missing resource.
const REFRESH_AFTER: Duration = Duration::from_secs(10);

/// Discovery that is read anew for missing resources, at most every ten seconds.
pub(crate) struct FreshDiscovery {
    discovery: Discovery,
    read_at: Mutex<Option<Instant>>,
}

impl FreshDiscovery {
    pub(crate) fn new(discovery: Discovery) -> Self {
        Self { discovery, read_at: Mutex::default() }
    }

    /// Returns the last snapshot.
    pub(crate) fn resources(&self) -> Arc<Resources> {
        self.discovery.resources()
    }

    /// Reads a new snapshot. Returns `None` if one was read for a missing resource within ten seconds.
    pub(crate) async fn fresh(&self) -> Result<Option<Arc<Resources>>, ApiError> {
        if self.may_read() { self.discovery.fresh().await.map(Some) } else { Ok(None) }
    }

    fn may_read(&self) -> bool {
        let now = Instant::now();
        let mut read_at = self.read_at.lock();
        let may_read = read_at.is_none_or(|at| now.duration_since(at) > REFRESH_AFTER);
        if may_read {
            *read_at = Some(now);
        }
        may_read
    }
}
