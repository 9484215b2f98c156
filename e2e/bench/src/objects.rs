//! Requests about objects of any kind, by path.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::{TryStreamExt, stream};
use kcm_e2e_harness::wait;
use kube::api::WatchEvent;
use serde_json::{Value, json};

use super::workload::{AT_ONCE, LIMIT, Workload};

/// Objects of which no more than the metadata is served.
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// Whole objects.
pub(super) const WHOLE: &str = "application/json";

impl Workload {
    /// Does something so often, several at a time.
    pub(super) async fn many(&self, count: usize, act: impl AsyncFn(usize) -> Result<()>) -> Result<()> {
        let act = &act;
        stream::iter((0..count).map(anyhow::Ok))
            .try_for_each_concurrent(AT_ONCE, async |number| act(number).await)
            .await
    }

    /// Creates an object, and returns its uid.
    pub(super) async fn post(&self, path: &str, object: &Value) -> Result<String> {
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.header("accept", METADATA);
        let answer = self.client.request_text(request.body(object.to_string().into_bytes())?).await;
        let answer: Value = serde_json::from_str(&answer.with_context(|| format!("POST {path}"))?)?;
        Ok(answer["metadata"]["uid"].as_str().context("an object has a uid")?.to_owned())
    }

    /// Changes an object by a merge patch.
    pub(super) async fn merge(&self, path: &str, change: &Value) -> Result<()> {
        let request = http::Request::patch(path).header("content-type", "application/merge-patch+json");
        let request = request.header("accept", METADATA).body(change.to_string().into_bytes())?;
        self.client.request_text(request).await.with_context(|| format!("PATCH {path}")).map(drop)
    }

    /// Reads an object or a list; `None` where there is none.
    pub(super) async fn get(&self, path: &str) -> Result<Option<Value>> {
        match self.client.request_text(http::Request::get(path).body(Vec::new())?).await {
            Ok(answer) => Ok(Some(serde_json::from_str(&answer)?)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error).with_context(|| format!("GET {path}")),
        }
    }

    /// Deletes an object.
    pub(super) async fn delete(&self, path: &str, policy: &str) -> Result<()> {
        let body = json!({ "propagationPolicy": policy }).to_string().into_bytes();
        let request = http::Request::delete(path).header("content-type", "application/json").body(body)?;
        self.client.request_text(request).await.with_context(|| format!("DELETE {path}")).map(drop)
    }

    /// The number of objects, which costs the API server little: it shares the cores with the manager.
    pub(super) async fn count(&self, path: &str) -> Result<usize> {
        let limit = if path.contains('?') { "&limit=1" } else { "?limit=1" };
        let request = http::Request::get(format!("{path}{limit}"));
        let request = request.header("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
        let answer = self.client.request_text(request.body(Vec::new())?).await;
        let answer: Value = serde_json::from_str(&answer.with_context(|| format!("GET {path}"))?)?;
        let behind = answer["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
        Ok(answer["items"].as_array().map_or(0, Vec::len) + usize::try_from(behind)?)
    }

    /// Waits until there are so many objects.
    pub(super) async fn are_left(&self, path: &str, expected: usize) -> Result<()> {
        wait::eventually_within(&format!("{expected} objects at {path}"), LIMIT, async || {
            let left = self.count(path).await?;
            ensure!(left == expected, "{left} are there");
            Ok(())
        })
        .await
    }

    /// Waits until so many objects of a collection are as they should be.
    pub(super) async fn are(&self, path: &str, expected: usize, is_done: impl Fn(&Value) -> bool) -> Result<()> {
        wait::eventually_within(&format!("{expected} objects at {path} to be complete"), LIMIT, async || {
            let list = self.get(path).await?.unwrap_or_default();
            let done = list["items"].as_array().map_or(0, |items| items.iter().filter(|item| is_done(item)).count());
            if done < expected {
                // A large list costs the API server CPU time, and it shares the cores with the manager.
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            ensure!(done == expected, "{done} of {expected} are");
            Ok(())
        })
        .await
    }

    /// Watches a collection and calls `see` with each event until it returns true. Objects that exist already come first,
    /// as added.
    pub(super) async fn watch_until(
        &self,
        path: &str,
        accept: &str,
        mut see: impl FnMut(WatchEvent<Value>) -> bool,
    ) -> Result<()> {
        let question = if path.contains('?') { '&' } else { '?' };
        let mut seen = String::new();
        let watch = async {
            // The API server ends a watch that does not take its events fast enough.
            loop {
                let request = http::Request::get(format!("{path}{question}watch=1&resourceVersion={seen}"));
                let request = request.header("accept", accept).body(Vec::new())?;
                let mut events = pin!(self.client.request_events::<Value>(request).await?);
                while let Some(event) = events.try_next().await? {
                    match &event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                            let version = object["metadata"]["resourceVersion"].as_str();
                            version.context("an object has a resource version")?.clone_into(&mut seen);
                        }
                        WatchEvent::Bookmark(_) => {}
                        WatchEvent::Error(status) => bail!("{status:?}"),
                    }
                    if see(event) {
                        return Ok(());
                    }
                }
            }
        };
        let watched = tokio::time::timeout(LIMIT, watch).await.context("it took too long").flatten();
        watched.with_context(|| format!("WATCH {path}"))
    }
}

/// The owner reference to an object, as a controller writes it.
pub(super) fn reference(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true,
        "blockOwnerDeletion": true,
    })
}
