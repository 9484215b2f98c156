//! Second watches that begin before a takeover.
//!
//! The API server sends the bookmark of a second watch a second after the watch has begun, so that a proof that opens its
//! watch at the takeover takes a second. A manager that expects a takeover opens watches before it. Nothing else is done
//! early: the version that they must reach is read after the takeover, because the last leader may write until then.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kube::Client;
use tokio::time::{Instant, sleep_until};

use super::proof::History;
use super::second_watch::{SecondWatch, Shown, Watches};
use crate::cache::Cache;

/// Pause between two watches of one cache. A takeover finds a watch whose bookmark comes that soon.
const PERIOD: Duration = Duration::from_millis(500);
/// Number of watches of one cache.
const MOST: usize = 4;

/// Watches of the caches of a factory by a manager that expects a takeover.
///
/// Made by [`Factory::look_ahead`](crate::Factory::look_ahead). It costs at most four watches for each cache, each of
/// three seconds at most.
#[derive(Default)]
#[must_use = "it watches only while it runs"]
pub struct LookAhead {
    pub(crate) caches: Vec<(u64, Ahead)>,
}

/// The watches of one cache.
pub(crate) struct Ahead {
    client: Client,
    cache: Arc<dyn Cache>,
    pub(super) watches: Watches,
    pub(super) history: History,
    next: Instant,
    opened: usize,
}

impl LookAhead {
    /// Watches until it is dropped. A takeover goes on with the watches that are open then.
    ///
    /// # Cancellation
    /// No change is lost by that.
    pub async fn run(&mut self) -> Infallible {
        match join_all(self.caches.iter_mut().map(|(_, ahead)| ahead.run())).await.pop() {
            Some(never) => match never {},
            None => std::future::pending().await,
        }
    }
}

impl std::fmt::Debug for LookAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LookAhead").field("caches", &self.caches.len()).finish_non_exhaustive()
    }
}

impl Ahead {
    pub(crate) fn new(client: Client, cache: Arc<dyn Cache>) -> Self {
        let (watches, history) = (Watches::default(), History::default());
        Self { client, cache, watches, history, next: Instant::now(), opened: 0 }
    }

    async fn run(&mut self) -> Infallible {
        loop {
            let may_open = self.opened < MOST;
            if may_open && Instant::now() >= self.next {
                let from = self.cache.last_sync_resource_version();
                let (resource, list_options) = (self.cache.resource(), self.cache.list_options());
                self.watches.add(SecondWatch::open(&self.client, resource, list_options, &from));
                self.next = Instant::now() + PERIOD;
                self.opened += 1;
            }
            tokio::select! {
                biased;
                shown = self.watches.next() => match shown {
                    Shown::Event(version) => self.history.event(version),
                    Shown::Bookmark { version, .. } => self.history.bookmark(version),
                    // The proof opens another.
                    Shown::Ended { .. } => {}
                },
                () = sleep_until(self.next), if may_open => {}
            }
        }
    }
}
