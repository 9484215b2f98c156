//! Finds out that the storage of the API server has gone back, for example by a restore from a backup.
//!
//! A watch from a version that the storage has not reached again is accepted and stays silent, so nothing else shows it
//! for minutes. After each outage, and if somebody suspects it, a consistent list of one object returns the revision of
//! the storage. If a cache in the same storage is ahead of the revision, the storage has gone back, and each cache that
//! is ahead is listed again.

use std::cmp::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use kcm_api::{Resource, ResourceVersion};
use kube::Client;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::connection::{Connection, ConnectionChange};
use crate::envelope::Page;
use crate::http_exchange::{ResponseBody, send};
use crate::list_options::ListOptions;
use crate::protocol::ListWatchRequest;
use crate::request::{Form, http_request};

/// Time after a check, or an attempt, before which there is no other.
const GAP: Duration = Duration::from_secs(10);
/// Number of attempts to read the revision.
const ATTEMPTS: usize = 6;
/// Number of bytes of the response that are read: it has the metadata of one object.
const LONGEST_RESPONSE: usize = 4 << 20;

/// A list that shows the revision of the storage, and the versions of the caches in the same storage.
pub(crate) struct Known {
    pub(crate) resource: Resource,
    pub(crate) list_options: ListOptions,
    pub(crate) versions: Vec<ResourceVersion>,
}

/// The caches of a factory, as the check sees them.
pub(crate) trait Caches: Send + Sync {
    /// The versions to compare with; `None` without an informer.
    fn known(&self) -> Option<Known>;

    /// Has all caches listed again that are ahead of `revision`, and returns their number.
    fn relist(&self, revision: &ResourceVersion) -> usize;
}

/// Checks after each outage and each suspicion, until the caches are dropped.
pub(crate) async fn watch<C: Caches>(caches: Weak<C>, suspicions: Arc<Notify>, client: Client, connection: Connection) {
    let mut changes = connection.changes();
    loop {
        tokio::select! {
            biased;
            change = changes.next() => match change {
                ConnectionChange::Lost => continue,
                ConnectionChange::Restored => {}
            },
            () = suspicions.notified() => {}
        }
        for _ in 0..ATTEMPTS {
            connection.reachable().await;
            let Some(known) = caches.upgrade().map(|caches| caches.known()) else { return };
            let Some(Known { resource, list_options, versions }) = known else { break };
            let revision = revision(&client, &resource, &list_options).await;
            if let Some(revision) = &revision
                && versions.iter().any(|version| is_ahead(version, revision))
            {
                let Some(caches) = caches.upgrade() else { return };
                let caches = caches.relist(revision);
                tracing::error!(
                    %resource, %revision, caches,
                    "The storage of the API server has gone back; listing the caches again that are ahead of it"
                );
            }
            sleep(GAP).await;
            if revision.is_some() {
                break;
            }
        }
    }
}

/// Returns `true` if a cache at `version` is ahead of storage at `revision`.
pub(crate) fn is_ahead(version: &ResourceVersion, revision: &ResourceVersion) -> bool {
    version.compare(revision) == Some(Ordering::Greater)
}

/// The revision of the storage of a resource; `None` if the request fails.
async fn revision(client: &Client, resource: &Resource, list_options: &ListOptions) -> Option<ResourceVersion> {
    let page = ListWatchRequest::Page { continue_token: None, limit: 1 };
    let request = http_request(resource, list_options, Form::Metadata, &page);
    let read = async {
        let ResponseBody { body, .. } = send(client.clone(), request).await.map_err(|error| error.to_string())?;
        let body = Limited::new(body, LONGEST_RESPONSE).collect().await.map_err(|error| error.to_string())?.to_bytes();
        let page = Page::read(&body).map_err(|error| error.to_string())?;
        Ok::<_, String>(page.metadata.resource_version)
    };
    match read.await {
        Ok(revision) => Some(revision),
        Err(error) => {
            tracing::debug!(%resource, error, "Cannot read the revision of the storage");
            None
        }
    }
}
