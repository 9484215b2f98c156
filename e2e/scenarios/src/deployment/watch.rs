//! Watching all changes to objects of a kind.

use std::fmt::Debug;

use anyhow::{Context, Result, bail};
use futures::TryStreamExt;
use kube::ResourceExt;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use serde::de::DeserializeOwned;

/// The resource version from which a watch sees everything that happens from now on.
pub(crate) async fn now<K: Clone + Debug + DeserializeOwned>(api: &Api<K>) -> Result<String> {
    let list = api.list(&ListParams::default()).await.context("cannot list")?;
    list.metadata.resource_version.context("a list has a version")
}

/// Calls `see` with every change since `from` and whether the object was deleted; ends only with an error of its own or
/// of `see`.
pub(crate) async fn follow<K>(api: &Api<K>, from: String, mut see: impl FnMut(&K, bool) -> Result<()>) -> Result<()>
where
    K: Clone + Debug + DeserializeOwned + kube::Resource,
{
    let mut version = from;
    loop {
        let changes = api.watch(&WatchParams::default(), &version).await.context("cannot watch")?;
        let mut changes = Box::pin(changes);
        while let Some(change) = changes.try_next().await.context("a watch broke")? {
            let (object, gone) = match change {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(bookmark) => {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => bail!("a watch failed: {status:?}"),
            };
            version = object.resource_version().unwrap_or_default();
            see(&object, gone)?;
        }
    }
}
