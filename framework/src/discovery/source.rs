//! The requests of discovery, and the snapshot that they lead to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use kcm_client::{ApiClient, ApiError, Cause};
use kcm_informers::{Connection, Factory};
use serde::de::{DeserializeOwned, Error as _};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::resources::{FoundVersion, Resources};
use super::wire::{self, Root, VersionList};

const JSON: &str = "application/json";
// Aggregated servers may be slow; requesting them one after the other would add up their time-outs.
const CONCURRENT_REQUESTS: usize = 8;

/// The source of snapshots.
pub(super) struct Source {
    client: ApiClient,
    current: watch::Sender<Arc<Resources>>,
    /// Number of reads that have begun.
    begun: AtomicU64,
    /// The number of the last read that succeeded; held while one is going on.
    completed: Mutex<u64>,
    /// When the last read that succeeded ended.
    read_at: parking_lot::Mutex<Option<Instant>>,
    /// The informers whose lists show that a resource is not served.
    informers: OnceLock<Factory>,
}

impl Source {
    pub(super) fn new(client: ApiClient) -> Self {
        Self {
            client,
            current: watch::Sender::default(),
            begun: AtomicU64::new(0),
            completed: Mutex::new(0),
            read_at: parking_lot::Mutex::default(),
            informers: OnceLock::new(),
        }
    }

    /// Time since the last read that succeeded.
    pub(super) fn age(&self) -> Option<Duration> {
        self.read_at.lock().map(|at| at.elapsed())
    }

    /// Believes the lists of these informers from now on. Only the first call counts.
    pub(super) fn believe(&self, informers: Factory) {
        self.informers.get_or_init(|| informers);
    }

    /// The connection that the requests go through.
    pub(super) fn connection(&self) -> &Connection {
        self.client.connection()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<Resources>> {
        self.current.subscribe()
    }

    /// Reads all groups, unless another call has done so from beginning to end since this call.
    pub(super) async fn refresh(&self) -> Result<(), ApiError> {
        let begun_before = self.begun.load(Ordering::SeqCst);
        let mut completed = self.completed.lock().await;
        if *completed > begun_before {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        self.read().await?;
        *completed = number;
        *self.read_at.lock() = Some(Instant::now());
        Ok(())
    }

    async fn read(&self) -> Result<(), ApiError> {
        let mut found = self.read_groups("/api").await?;
        found.extend(self.read_groups("/apis").await?);
        let previous = Arc::clone(&self.current.borrow());
        let is_not_found =
            |resource: &_| self.informers.get().is_some_and(|informers| informers.is_not_found(resource));
        let Some(resources) = Resources::merge(&previous, found, Instant::now(), is_not_found) else {
            let cause =
                Cause::Decode(serde_json::Error::custom("it has no namespaces, so it is no list of all resources"));
            return Err(ApiError::new("read what the API server serves", cause));
        };
        let departing: Vec<String> = resources.departing_since(&previous).map(ToString::to_string).collect();
        if let Some(first) = departing.first() {
            tracing::warn!(
                count = departing.len(),
                first,
                "Discovery lacks resources that it had; they count as served until it lacks them again"
            );
        }
        for (group_version, reason) in resources.broken() {
            if !previous.broken().contains_key(group_version) {
                tracing::warn!(group_version, reason, "Cannot discover an API group");
            }
        }
        self.current.send_if_modified(|current| {
            let is_changed = !current.serves_the_same_as(&resources);
            *current = Arc::new(resources);
            is_changed
        });
        Ok(())
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

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}
