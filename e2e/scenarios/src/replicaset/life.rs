//! Creation, deletion and replacement of pods.

use anyhow::{Result, ensure};
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::json;

use super::{Objects, controller_of, is_active, names, replica_set};

/// Three pods are created with owner, labels and events, and reported.
pub(super) async fn creates(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let (set, pods) = objects.settle(replica_set("web", 3)).await?;
    let status = set.status.clone().unwrap_or_default();
    ensure!(status.fully_labeled_replicas == Some(3), "fully labelled: {:?}", status.fully_labeled_replicas);
    ensure!(status.ready_replicas.unwrap_or(0) == 0, "ready: {:?}", status.ready_replicas);
    ensure!(status.available_replicas.unwrap_or(0) == 0, "available: {:?}", status.available_replicas);
    ensure!(super::failure_of(&set).is_none(), "a failure is reported");
    for pod in &pods {
        let [owner] = pod.owner_references() else { anyhow::bail!("{} owners", pod.owner_references().len()) };
        ensure!(owner.api_version == "apps/v1" && owner.kind == "ReplicaSet", "the owner is {owner:?}");
        ensure!(owner.name == "web" && Some(&owner.uid) == set.metadata.uid.as_ref(), "the owner is {owner:?}");
        ensure!(owner.controller == Some(true) && owner.block_owner_deletion == Some(true), "the owner is {owner:?}");
        ensure!(pod.metadata.generate_name.as_deref() == Some("web-"), "made from {:?}", pod.metadata.generate_name);
        ensure!(pod.labels().len() == 2 && pod.labels().get("tier").is_some_and(|tier| tier == "test"), "labels");
    }
    let expected: Vec<String> = names(&pods).iter().map(|name| format!("Created pod: {name}")).collect();
    eventually("an event for each pod", async || {
        let events = objects.events(&set, "SuccessfulCreate").await?;
        let mut messages: Vec<String> = events.iter().filter_map(|event| event.message.clone()).collect();
        messages.sort_unstable();
        ensure!(messages == expected, "{messages:?}");
        let component = events[0].source.as_ref().and_then(|source| source.component.clone());
        ensure!(component.as_deref() == Some("replicaset-controller"), "from {component:?}");
        Ok(())
    })
    .await
}

/// Scaling up keeps the pods, scaling down deletes only the surplus, and scaling to zero deletes all.
pub(super) async fn scales(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let (_, first) = objects.settle(replica_set("web", 2)).await?;
    objects.scale("web", 6).await?;
    let (_, more) = objects.settled("web").await?;
    ensure!(names(&first).iter().all(|name| names(&more).contains(name)), "scaling up replaced a pod");
    objects.scale("web", 3).await?;
    let (_, fewer) = objects.settled("web").await?;
    ensure!(names(&fewer).iter().all(|name| names(&more).contains(name)), "scaling down made a pod");
    objects.scale("web", 0).await?;
    let (set, _) = objects.settled("web").await?;
    eventually("an event for each deletion", async || {
        let events = objects.events(&set, "SuccessfulDelete").await?;
        let count: i32 = events.iter().map(|event| event.count.unwrap_or(1)).sum();
        ensure!(count == 6, "{count} events");
        ensure!(events.iter().all(|it| it.message.as_deref().is_some_and(|it| it.starts_with("Deleted pod: web-"))));
        Ok(())
    })
    .await
}

/// Scaling down deletes pods by rank: not ready before ready, low deletion cost before high.
pub(super) async fn deletes_by_rank(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let (_, pods) = objects.settle(replica_set("web", 4)).await?;
    let [ready, dear, plain, cheap] = names(&pods).try_into().map_err(|names| anyhow::anyhow!("{names:?}"))?;
    let cost =
        |cost: &str| json!({ "metadata": { "annotations": { "controller.kubernetes.io/pod-deletion-cost": cost } } });
    objects.patch_pod(&cheap, cost("-5")).await?;
    objects.patch_pod(&dear, cost("100")).await?;
    let condition = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z" }]);
    objects.patch_pod_status(&ready, json!({ "phase": "Running", "conditions": condition })).await?;
    eventually("the ready pod to be counted, so that all of this was seen", async || {
        let status = objects.sets.get("web").await?.status.unwrap_or_default();
        ensure!(status.ready_replicas == Some(1), "ready: {:?}", status.ready_replicas);
        Ok(())
    })
    .await?;
    for (left, gone) in [(3, &cheap), (2, &plain), (1, &dear)] {
        objects.scale("web", left).await?;
        let (_, pods) = objects.settled("web").await?;
        ensure!(!names(&pods).contains(gone), "at {left}, {gone} was to go; {:?} are left", names(&pods));
    }
    let (_, last) = objects.settled("web").await?;
    ensure!(names(&last) == [ready], "{:?} is left", names(&last));
    Ok(())
}

/// A deleted pod is replaced, and so is a failed one, which is kept.
pub(super) async fn replaces_what_is_gone(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let (set, pods) = objects.settle(replica_set("web", 3)).await?;
    let [deleted, failed, kept] = names(&pods).try_into().map_err(|names| anyhow::anyhow!("{names:?}"))?;
    objects.pods.delete(&deleted, &DeleteParams::default()).await?;
    objects.patch_pod_status(&failed, json!({ "phase": "Failed" })).await?;
    eventually("two replacements", async || {
        let active = names(&objects.active(&set).await?);
        ensure!(active.len() == 3 && active.contains(&kept), "{active:?}");
        ensure!(!active.contains(&deleted) && !active.contains(&failed), "{active:?}");
        Ok(())
    })
    .await?;
    let (set, _) = objects.settled("web").await?;
    let owned = names(&objects.owned(&set).await?);
    ensure!(owned.len() == 4 && owned.contains(&failed), "the failed pod is to stay: {owned:?}");
    Ok(())
}

/// A terminating pod is replaced at once, and counted as terminating until it is gone.
pub(super) async fn counts_terminating(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let (set, pods) = objects.settle(replica_set("web", 2)).await?;
    let held = pods[0].name_any();
    objects.patch_pod(&held, json!({ "metadata": { "finalizers": ["example.com/hold"] } })).await?;
    objects.pods.delete(&held, &DeleteParams::default()).await?;
    let terminating = async |expected: i32| {
        eventually(&format!("{expected} terminating and 2 others"), async || {
            let status = objects.sets.get("web").await?.status.unwrap_or_default();
            let active = objects.active(&set).await?.len();
            ensure!(active == 2 && status.replicas == 2, "{active} pods, {} reported", status.replicas);
            ensure!(status.terminating_replicas == Some(expected), "reports {:?}", status.terminating_replicas);
            Ok(())
        })
        .await
    };
    terminating(1).await?;
    objects.patch_pod(&held, json!({ "metadata": { "finalizers": null } })).await?;
    terminating(0).await
}

/// A set that is deleted in the foreground creates no pods while it waits for its own to go.
pub(super) async fn goes_in_foreground(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let (set, pods) = objects.settle(replica_set("web", 3)).await?;
    let first = names(&pods);
    let held = pods[0].name_any();
    objects.patch_pod(&held, json!({ "metadata": { "finalizers": ["example.com/hold"] } })).await?;
    let foreground =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
    objects.sets.delete("web", &foreground).await?;
    let nothing_new = async || {
        let pods = objects.owned(&set).await?;
        ensure!(pods.iter().all(|pod| first.contains(&pod.name_any())), "it made a pod: {:?}", names(&pods));
        anyhow::Ok(pods)
    };
    eventually("only the held pod to be left", async || {
        let pods = nothing_new().await?;
        ensure!(pods.len() == 1 && !is_active(&pods[0]), "{:?} are left", names(&pods));
        ensure!(controller_of(&pods[0]).is_some(), "the held pod was released");
        Ok(())
    })
    .await?;
    objects.patch_pod(&held, json!({ "metadata": { "finalizers": null } })).await?;
    eventually("the set to be gone", async || {
        ensure!(objects.sets.get_opt("web").await?.is_none(), "it is still there");
        Ok(())
    })
    .await?;
    ensure!(nothing_new().await?.is_empty(), "a pod is left");
    Ok(())
}
