//! The parts that loops of all kinds have.

use std::sync::Arc;

use kcm_client::ApiClient;
use kcm_informers::Cache;

use super::{LoopContext, Session};
use crate::explain::Notes;
use crate::metrics::Metrics;

/// The names, clients and caches of one loop, with or without keys.
pub(crate) struct LoopCore {
    pub(crate) controller: &'static str,
    /// The name of the loop, and of its queue.
    pub(crate) name: &'static str,
    /// The client of the controller.
    pub(crate) api: ApiClient,
    /// The client of live checks.
    pub(crate) live: ApiClient,
    pub(crate) context: Arc<LoopContext>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) caches: Arc<[Arc<dyn Cache>]>,
}

impl LoopCore {
    /// Creates a session that writes through the client of the controller and waits for the caches.
    pub(super) fn session(&self, notes: Notes) -> Session {
        self.session_over(Arc::clone(&self.caches), notes)
    }

    /// Creates a session that knows no caches: nothing waits for its writes.
    pub(super) fn session_without_caches(&self) -> Session {
        self.session_over([].into(), Notes::new(false))
    }

    fn session_over(&self, caches: Arc<[Arc<dyn Cache>]>, notes: Notes) -> Session {
        Session::new(self.api.clone(), self.live.clone(), caches, Arc::clone(&self.context), notes)
    }
}
