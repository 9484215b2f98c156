//! Simulated nodes.

use anyhow::{Context, Result, ensure};
use futures::{TryStreamExt, stream};
use k8s_openapi::api::core::v1 as corev1;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;

use crate::wait;

/// The annotation, with its value, of nodes that kwok simulates.
pub const MANAGED: &str = "kwok.x-k8s.io/node=fake";

/// Makes nodes `PREFIX-1`, `PREFIX-2`… and waits until kwok has made them ready.
///
/// # Errors
///
/// If a node cannot be made, or is not ready in time.
pub async fn create(client: &Client, prefix: &str, count: usize) -> Result<()> {
    let nodes: Api<corev1::Node> = Api::all(client.clone());
    stream::iter((1..=count).map(anyhow::Ok))
        .try_for_each_concurrent(16, |index| {
            let nodes = nodes.clone();
            async move {
                let name = format!("{prefix}-{index}");
                let node = node(&name)?;
                nodes
                    .create(&PostParams::default(), &node)
                    .await
                    .with_context(|| format!("cannot make node {name}"))?;
                Ok(())
            }
        })
        .await?;
    let theirs = ListParams::default().labels(&format!("e2e-nodes={prefix}"));
    let made = wait::eventually("nodes to be ready", async || {
        let ready = nodes.list(&theirs).await?.items.iter().filter(|node| is_ready(node)).count();
        ensure!(ready == count, "{ready} of {count} are ready");
        Ok(())
    });
    made.await.context("is kwok running?")
}

fn node(name: &str) -> Result<corev1::Node> {
    let (prefix, _) = name.rsplit_once('-').unwrap_or((name, ""));
    let (annotation, value) = MANAGED.split_once('=').unwrap_or((MANAGED, ""));
    let node = json!({
        "metadata": {
            "name": name,
            "annotations": { annotation: value },
            "labels": { "e2e-nodes": prefix, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" },
        },
    });
    serde_json::from_value(node).context("a node must be built from its JSON")
}

fn is_ready(node: &corev1::Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
