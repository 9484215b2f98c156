//! Requests about objects of any kind, by path.

use anyhow::{Context, Result, ensure};
use futures::{TryStreamExt, stream};
use serde_json::{Value, json};

use super::workload::{AT_ONCE, LIMIT, Workload};
use crate::wait;

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
        let request = request.header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
        let answer = self.client.request_text(request.body(object.to_string().into_bytes())?).await;
        let answer: Value = serde_json::from_str(&answer.with_context(|| format!("POST {path}"))?)?;
        Ok(answer["metadata"]["uid"].as_str().context("an object has a uid")?.to_owned())
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
}

/// The owner reference to an object, as a controller writes it.
pub(super) fn reference(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true,
        "blockOwnerDeletion": true,
    })
}
