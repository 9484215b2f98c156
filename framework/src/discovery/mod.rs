//! Discovery: the resources that the API server serves, and the resource of a kind.
//!
//! A [`Refresher`] reads them; a [`Discovery`] holds the last snapshot and notifies of changes. One request for the
//! core group and one for all others if the server aggregates discovery, else one per version of each group.
//!
//! # Guarantees
//!
//! - *Snapshots are compared by what is served.* A group whose discovery fails keeps the resources that it had, so that
//!   neither the failure nor another error message is a change.
//! - *A resource leaves when two snapshots in a row lack it*, read at least ten seconds apart, or at once if its list
//!   gets a 404. Until then it [departs](Resources::is_departing): an API server that has just started may not know
//!   all groups yet, and during an upgrade servers of two versions answer in turn.
//! - *Discovery without namespaces is no snapshot.* It is an error, as if the server had not responded.
//! - *A decision that needs it asks afresh.* [`Discovery::fresh`] returns a snapshot that was read after the call, and
//!   many calls at once share one.
//! - *An outage ends with one refresh.* The refresher sends nothing while the API server is unreachable, and reads once
//!   when it is back.

mod resources;
mod source;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use kcm_api::Resource;
use kcm_client::{ApiClient, ApiError};
use kcm_informers::Factory;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use self::resources::{Resources, ServedResource, ServedSubresource};
use self::source::Source;

/// The period of discovery.
pub const REFRESH_EVERY: Duration = Duration::from_secs(30);

/// The resources that the API server serves, as of the last snapshot. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Discovery {
    current: watch::Receiver<Arc<Resources>>,
    origin: Origin,
}

#[derive(Debug, Clone)]
enum Origin {
    Read(Arc<Source>),
    /// Holds the sender, because receivers take its end for the end of the manager.
    Fixed {
        _sender: watch::Sender<Arc<Resources>>,
    },
}

impl Discovery {
    /// A discovery that never changes and sends no requests, for tests and simulations.
    ///
    /// [`Resources`] are read once by a [`Refresher`].
    #[must_use]
    pub fn fixed(resources: impl Into<Arc<Resources>>) -> Self {
        let (sender, current) = watch::channel(resources.into());
        Self { current, origin: Origin::Fixed { _sender: sender } }
    }

    /// Returns the last snapshot of discovery.
    #[must_use]
    pub fn resources(&self) -> Arc<Resources> {
        Arc::clone(&self.current.borrow())
    }

    /// Time since the snapshot was last read completely, whether or not it changed. `None` if it never was, or is fixed.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        match &self.origin {
            Origin::Read(source) => source.age(),
            Origin::Fixed { .. } => None,
        }
    }

    /// Returns `true` if a resource is served, by group, version and plural name.
    #[must_use]
    pub fn is_available(&self, resource: &Resource) -> bool {
        self.current.borrow().is_available(resource)
    }

    /// The resource of a kind, in the version that its group prefers.
    #[must_use]
    pub fn resource_of_kind(&self, group: &str, kind: &str) -> Option<Resource> {
        self.current.borrow().resource_of_kind(group, kind).cloned()
    }

    /// Reads a new snapshot, for a decision that must not rest on the last snapshot, which is up to [`REFRESH_EVERY`]
    /// old: a namespace is empty only if it holds no object of any kind that is served now.
    ///
    /// # Errors
    /// If the list of groups cannot be read. A group whose own discovery fails is listed in [`Resources::broken`].
    pub async fn fresh(&self) -> Result<Arc<Resources>, ApiError> {
        match &self.origin {
            Origin::Read(source) => source.refresh().await?,
            Origin::Fixed { .. } => {}
        }
        Ok(self.resources())
    }

    /// A receiver of changed snapshots; the current one counts as seen.
    ///
    /// A receiver is notified only if the served resources change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Arc<Resources>> {
        let mut changes = self.current.clone();
        changes.mark_unchanged();
        changes
    }
}

/// The task that keeps a [`Discovery`] up to date. Cheap to clone; all clones are one refresher.
///
/// # Upstream
/// The discovery-backed REST mapper of the controller context, reset every 30 s; failing groups are logged and
/// skipped.
#[derive(Clone)]
pub struct Refresher {
    source: Arc<Source>,
}

impl Refresher {
    /// A refresher that requests through `client`; the snapshot is empty before the first [`refresh`](Self::refresh).
    #[must_use]
    pub fn new(client: ApiClient) -> Self {
        Self { source: Arc::new(Source::new(client)) }
    }

    /// The handle of the discovery.
    #[must_use]
    pub fn discovery(&self) -> Discovery {
        Discovery { current: self.source.subscribe(), origin: Origin::Read(Arc::clone(&self.source)) }
    }

    /// Believes the lists of `informers` from now on: a resource whose list gets a 404 leaves with the first snapshot
    /// that lacks it.
    pub fn believe(&self, informers: &Factory) {
        self.source.believe(informers.clone());
    }

    /// Reads all groups once. If the server, or the aggregated server of a group, fails, the known resources of the
    /// group are kept.
    ///
    /// # Errors
    /// If the list of groups cannot be read; a single broken group is no error.
    pub async fn refresh(&self) -> Result<(), ApiError> {
        self.source.refresh().await
    }

    /// Refreshes every 30 s, and at the end of each outage, until `cancel`; an error is logged, and the next refresh
    /// follows.
    pub async fn run(self, cancel: CancellationToken) {
        let connection = self.source.connection();
        let forever = async {
            loop {
                // Either may end the wait: an outage that begins late in a period outlasts it.
                tokio::select! {
                    biased;
                    () = connection.lost() => {}
                    () = tokio::time::sleep(REFRESH_EVERY) => {}
                }
                connection.reachable().await;
                if let Err(error) = self.refresh().await {
                    tracing::warn!(request = %error, reason = error.message(), "Discovery failed");
                }
            }
        };
        cancel.run_until_cancelled(forever).await;
    }
}
