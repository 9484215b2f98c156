//! Discovery: the resources that the API server serves, and the resource of a kind.
//!
//! A [`Refresher`] reads them; a [`Discovery`] holds the last snapshot and notifies of changes. One request for
//! the core group and one for all others where the server aggregates discovery, else one per version of each group.

mod resources;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use kcm_api::Resource;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::resources::FoundVersion;
pub use self::resources::{Resources, ServedResource};
use self::wire::{Root, VersionList};
use crate::client::{ApiClient, ApiError, Cause};

/// The period of discovery.
pub const REFRESH_EVERY: Duration = Duration::from_secs(30);

const JSON: &str = "application/json";
// Aggregated servers may be slow; requesting them one after the other would add up their time-outs.
const CONCURRENT_REQUESTS: usize = 8;

/// The resources that the API server serves, as of the last snapshot. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Discovery {
    current: watch::Receiver<Arc<Resources>>,
}

impl Discovery {
    /// A discovery that never changes, for tests.
    #[must_use]
    pub fn fixed(resources: Resources) -> Self {
        Self { current: watch::channel(Arc::new(resources)).1 }
    }

    /// The last snapshot.
    #[must_use]
    pub fn resources(&self) -> Arc<Resources> {
        Arc::clone(&self.current.borrow())
    }

    /// Whether a resource is served, by group, version and plural name.
    #[must_use]
    pub fn is_available(&self, resource: &Resource) -> bool {
        self.current.borrow().is_available(resource)
    }

    /// The resource of a kind, in the version that its group prefers.
    #[must_use]
    pub fn resource_of_kind(&self, group: &str, kind: &str) -> Option<Resource> {
        self.current.borrow().resource_of_kind(group, kind).cloned()
    }

    /// A receiver of changed snapshots; the current one counts as seen.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Arc<Resources>> {
        let mut changes = self.current.clone();
        changes.mark_unchanged();
        changes
    }
}

/// The task that keeps a [`Discovery`] up to date.
///
/// # Upstream
/// The discovery-backed REST mapper of the controller context, reset every 30 s; failing groups are logged and
/// skipped.
pub struct Refresher {
    client: ApiClient,
    current: watch::Sender<Arc<Resources>>,
}

impl Refresher {
    /// A refresher that requests through `client`; the snapshot is empty before the first [`refresh`](Self::refresh).
    #[must_use]
    pub fn new(client: ApiClient) -> Self {
        Self { client, current: watch::Sender::default() }
    }

    /// The handle of the discovery.
    #[must_use]
    pub fn discovery(&self) -> Discovery {
        Discovery { current: self.current.subscribe() }
    }

    /// Reads all groups once. The known resources of a group stay where the server, or its aggregated server, fails.
    ///
    /// # Errors
    /// Where the list of groups cannot be read; a single broken group is no error.
    pub async fn refresh(&self) -> Result<(), ApiError> {
        let mut found = self.read_groups("/api").await?;
        found.extend(self.read_groups("/apis").await?);
        let previous = Arc::clone(&self.current.borrow());
        let resources = Resources::merge(&previous, found);
        for (group_version, reason) in resources.broken() {
            if !previous.broken().contains_key(group_version) {
                tracing::warn!(group_version, reason, "An API group cannot be discovered");
            }
        }
        self.current.send_if_modified(|current| {
            let is_changed = **current != resources;
            if is_changed {
                *current = Arc::new(resources);
            }
            is_changed
        });
        Ok(())
    }

    /// Refreshes every 30 s until `cancel`; an error is logged, and the next refresh follows.
    pub async fn run(self, cancel: CancellationToken) {
        let forever = async {
            loop {
                tokio::time::sleep(REFRESH_EVERY).await;
                if let Err(error) = self.refresh().await {
                    tracing::warn!(request = %error, reason = error.message(), "Discovery failed");
                }
            }
        };
        cancel.run_until_cancelled(forever).await;
    }

    async fn read_groups(&self, root: &str) -> Result<Vec<FoundVersion>, ApiError> {
        let answer = match self.get(root, wire::ACCEPT).await {
            // The server does not know the aggregated format.
            Err(error) if error.status().is_some_and(|status| status.code == 406) => self.get(root, JSON).await,
            other => other,
        };
        let versions: Vec<(String, String)> = match answer? {
            Root::Aggregated { items } => return Ok(items.into_iter().flat_map(wire::Group::found).collect()),
            Root::Groups { groups } => groups.into_iter().flat_map(wire::GroupEntry::versions).collect(),
            Root::Core { versions } => versions.into_iter().map(|version| (String::new(), version)).collect(),
        };
        let requests = versions.into_iter().map(|(group, version)| async move {
            let path = if group.is_empty() { format!("{root}/{version}") } else { format!("{root}/{group}/{version}") };
            let served = match self.get::<VersionList>(&path, JSON).await {
                Ok(list) => Ok(list.found()),
                // The group was removed after the list of groups was read.
                Err(error) if error.is_not_found() => Ok(Vec::new()),
                Err(error) => Err(error.message()),
            };
            FoundVersion { group, version, served }
        });
        Ok(stream::iter(requests).buffered(CONCURRENT_REQUESTS).collect().await)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, accept: &'static str) -> Result<T, ApiError> {
        let body = self.client.get_path(path, accept).await?;
        serde_json::from_slice(&body).map_err(|error| ApiError::new(format!("get {path}"), Cause::Decode(error)))
    }
}
