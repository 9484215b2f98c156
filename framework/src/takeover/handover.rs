//! The handover of a manager that stops.

use std::fmt;
use std::sync::Arc;

use kcm_client::WriteRecord;
use kcm_informers::Cache;
use tokio::sync::watch;

use super::{CacheVersions, Takeover};

/// The caches and the writes of a manager that stops, from which its successor learns what it must see.
///
/// Made by [`ManagerHandle::handover`](crate::ManagerHandle::handover). It holds the caches until it is dropped.
pub struct Handover {
    caches: Vec<Arc<dyn Cache>>,
    writes: WriteRecord,
    takeovers: watch::Receiver<Vec<Arc<Takeover>>>,
}

impl Handover {
    pub(crate) const fn new(
        caches: Vec<Arc<dyn Cache>>,
        writes: WriteRecord,
        takeovers: watch::Receiver<Vec<Arc<Takeover>>>,
    ) -> Self {
        Self { caches, writes, takeovers }
    }

    /// Waits until the outcome of each write is known, or the write can no longer take effect. Call it when no loop runs.
    pub async fn settled(&self) {
        self.writes.settled().await;
    }

    /// The versions that the caches of a successor must reach. Call it when all writes are [settled](Self::settled).
    #[must_use]
    pub fn cache_versions(&self) -> CacheVersions {
        CacheVersions::collect(&self.caches, &self.writes, &self.takeovers.borrow())
    }
}

impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover").field("caches", &self.caches.len()).finish_non_exhaustive()
    }
}
