//! Reads the current version of a resource.
//!
//! The request names an object that does not exist in one namespace, so that it costs the API server one key, however many
//! objects there are. It is a watch with initial events, because a request of that kind makes the watch cache of the API
//! server that serves it catch up at once. The second watch goes over the same connection, and shows the result.

use http_body_util::{BodyExt as _, Limited};
use kcm_api::{Resource, ResourceVersion};
use kube::Client;
use serde::Deserialize;

use super::second_watch::{PAUSE, SecondWatch, Shown, TIMEOUT_SECONDS, versions_request};
use crate::list_options::ListOptions;

/// Name of an object that does not exist. It is no valid name.
const NO_OBJECT: &str = "metadata.name=-";

/// Largest response to a list of no objects.
const LARGEST: usize = 64 << 10;

/// Returns a version of the resource that is at least the version of each write before the call. Tries again until it is
/// dropped.
pub(super) async fn read_floor(client: &Client, resource: &Resource, list_options: &ListOptions) -> ResourceVersion {
    let namespace = list_options.namespace.as_deref().unwrap_or("default");
    let nothing = ListOptions {
        namespace: resource.namespaced.then(|| namespace.to_owned()),
        field_selector: Some(NO_OBJECT.to_owned()),
        ..ListOptions::default()
    };
    loop {
        if let Some(version) = of_watch(client, resource, &nothing).await {
            return version;
        }
        if let Some(version) = of_list(client, resource, &nothing).await {
            return version;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn of_watch(client: &Client, resource: &Resource, nothing: &ListOptions) -> Option<ResourceVersion> {
    let query = [
        ("watch", "1"),
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", TIMEOUT_SECONDS),
    ];
    let mut watch = SecondWatch::send(client, resource, nothing, &query);
    loop {
        match watch.next().await {
            Shown::Bookmark { version, ends_initial_events: true } => return Some(version),
            Shown::Event(_) => {}
            // A server that ignores the parameter does not mark the end.
            Shown::Bookmark { .. } | Shown::Ended { .. } => return None,
        }
    }
}

/// Of an API server without streaming lists.
async fn of_list(client: &Client, resource: &Resource, nothing: &ListOptions) -> Option<ResourceVersion> {
    #[derive(Deserialize)]
    struct List {
        metadata: ListMeta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ListMeta {
        resource_version: ResourceVersion,
    }
    let response = client.send(versions_request(resource, nothing, &[("limit", "1")])).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let body = Limited::new(response.into_body(), LARGEST).collect().await.ok()?.to_bytes();
    let List { metadata } = serde_json::from_slice(&body).ok()?;
    Some(metadata.resource_version).filter(|version| !version.is_unset())
}
