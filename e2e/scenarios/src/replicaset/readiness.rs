//! Readiness and availability of pods.

use anyhow::{Result, ensure};
use futures::{TryStreamExt, pin_mut};
use jiff::{SignedDuration, Timestamp};
use kcm_e2e_harness::clock::now;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::{eventually, eventually_within};
use kube::ResourceExt;
use kube::api::{WatchEvent, WatchParams};
use serde_json::json;

use super::{Objects, replica_set};

/// A ready pod becomes available after `minReadySeconds`, without anything else happening, and
/// not before.
pub(super) async fn min_ready_seconds(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let mut set = replica_set("web", 2);
    set["spec"]["minReadySeconds"] = json!(4);
    let (set, pods) = objects.settle(set).await?;

    let watch = WatchParams::default().fields("metadata.name=web");
    let changes = objects.sets.watch(&watch, &set.resource_version().unwrap_or_default()).await?;
    pin_mut!(changes);
    // The API keeps whole seconds.
    let ready_at = Timestamp::from_second(now().as_second())?;
    for pod in &pods {
        let condition = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": ready_at.to_string() }]);
        objects.patch_pod_status(&pod.name_any(), json!({ "phase": "Running", "conditions": condition })).await?;
    }
    let mut was_ready_before = false;
    let available = async {
        while let Some(change) = changes.try_next().await? {
            let WatchEvent::Modified(set) = change else { continue };
            let status = set.status.unwrap_or_default();
            let (ready, available) = (status.ready_replicas.unwrap_or(0), status.available_replicas.unwrap_or(0));
            if available > 0 {
                let after = now().duration_since(ready_at);
                ensure!(after >= SignedDuration::from_secs(4), "available after {after:#}");
                ensure!(after < SignedDuration::from_secs(8), "available only after {after:#}");
            }
            was_ready_before |= ready == 2 && available == 0;
            if available == 2 {
                return Ok(());
            }
        }
        anyhow::bail!("the watch ended first")
    };
    tokio::time::timeout(kcm_e2e_harness::wait::PATIENCE, available)
        .await
        .map_err(|_| anyhow::anyhow!("never available"))??;
    ensure!(was_ready_before, "it was never reported as ready and not yet available");
    Ok(())
}

/// On nodes that run their pods, a set becomes available, and pods terminate gracefully when it is scaled down.
pub(super) async fn runs_on_nodes(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let mut set = replica_set("web", 5);
    set["spec"]["template"]["spec"]["schedulerName"] = json!("default-scheduler");
    objects.create_set(set).await?;
    let available = async |expected: i32| {
        eventually(&format!("{expected} available"), async || {
            let status = objects.sets.get("web").await?.status.unwrap_or_default();
            let counted = (status.replicas, status.ready_replicas.unwrap_or(0), status.available_replicas.unwrap_or(0));
            ensure!(counted == (expected, expected, expected), "replicas, ready, available: {counted:?}");
            Ok(())
        })
        .await
    };
    available(5).await?;
    objects.scale("web", 2).await?;
    available(2).await?;
    let (set, _) = objects.settled("web").await?;
    eventually_within("the others to be gone", kcm_e2e_harness::wait::PATIENCE, async || {
        let owned = objects.owned(&set).await?.len();
        ensure!(owned == 2, "{owned} are there");
        Ok(())
    })
    .await
}
