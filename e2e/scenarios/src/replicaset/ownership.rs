//! Adoption and release of pods.

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::json;

use super::{Objects, controller_of, is_controlled_by, names, orphan_of, replica_set};

/// A pod that matches and has no controller counts: only the rest is created.
pub(super) async fn adopts(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let (probe, _) = objects.settle(replica_set("probe", 1)).await?;
    objects.create_pod(orphan_of("web", "orphan")).await?;
    sees_pods(&objects, &probe).await?;
    let (set, pods) = objects.settle(replica_set("web", 2)).await?;
    ensure!(names(&pods).contains(&"orphan".to_owned()), "the orphan was not adopted: {:?}", names(&pods));
    let orphan = objects.pods.get("orphan").await?;
    let owner = controller_of(&orphan).context("the orphan has no controller")?;
    ensure!(owner.api_version == "apps/v1" && owner.kind == "ReplicaSet" && owner.name == "web", "{owner:?}");
    ensure!(owner.block_owner_deletion == Some(true), "{owner:?}");
    let status = set.status.unwrap_or_default();
    // The orphan lacks the template's label `tier`.
    ensure!(status.fully_labeled_replicas == Some(1), "fully labelled: {:?}", status.fully_labeled_replicas);
    // No pod was created and deleted again on the way.
    let all = objects.pods.list(&kube::api::ListParams::default().labels("app=web")).await?.items;
    ensure!(all.len() == 2, "{:?}", names(&all));
    Ok(())
}

/// Waits until the manager has seen the pods created so far.
///
/// Changes of one kind come in order: when the probe's pod, deleted now, is replaced, earlier ones were seen.
async fn sees_pods(objects: &Objects, probe: &k8s_openapi::api::apps::v1::ReplicaSet) -> Result<()> {
    let before = objects.active(probe).await?;
    let [pod] = before.as_slice() else { anyhow::bail!("the probe has {} pods", before.len()) };
    objects.pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
    eventually("the probe's pod to be replaced", async || {
        let now = objects.active(probe).await?;
        ensure!(now.len() == 1 && now[0].name_any() != pod.name_any(), "{:?}", names(&now));
        Ok(())
    })
    .await
}

/// A surplus orphan is adopted first, and then one pod is deleted.
pub(super) async fn adopts_the_surplus(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let (set, before) = objects.settle(replica_set("web", 2)).await?;
    objects.create_pod(orphan_of("web", "orphan")).await?;
    eventually("one of the three to go", async || {
        let all = objects.pods.list(&kube::api::ListParams::default().labels("app=web")).await?.items;
        ensure!(all.len() == 2, "{:?} are there", names(&all));
        ensure!(all.iter().all(|pod| is_controlled_by(pod, &set)), "one has no controller");
        let known = |name: &String| name == "orphan" || names(&before).contains(name);
        ensure!(names(&all).iter().all(known), "a pod was made: {:?}", names(&all));
        Ok(())
    })
    .await?;
    objects.settled("web").await?;
    Ok(())
}

/// A pod that no longer matches is released, otherwise left as it is, and replaced.
pub(super) async fn releases(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let (set, pods) = objects.settle(replica_set("web", 2)).await?;
    let released = pods[0].name_any();
    objects.patch_pod(&released, json!({ "metadata": { "labels": { "app": "debug" } } })).await?;
    eventually("the pod to be released and replaced", async || {
        let pod = objects.pods.get(&released).await?;
        ensure!(pod.owner_references().is_empty(), "it is owned by {:?}", pod.owner_references());
        let active = names(&objects.active(&set).await?);
        ensure!(active.len() == 2 && !active.contains(&released), "{active:?}");
        Ok(())
    })
    .await?;
    objects.settled("web").await?;
    let pod = objects.pods.get(&released).await?;
    ensure!(pod.uid() == pods[0].uid() && pod.metadata.deletion_timestamp.is_none(), "the released pod was touched");
    Ok(())
}

/// The orphaned pods of a deleted set are adopted by a new set, and no pod is created.
pub(super) async fn orphans(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let (_, pods) = objects.settle(replica_set("web", 3)).await?;
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    objects.sets.delete("web", &orphan).await?;
    eventually("the set to be gone and its pods to be free", async || {
        ensure!(objects.sets.get_opt("web").await?.is_none(), "the set is still there");
        for pod in &pods {
            let pod = objects.pods.get(&pod.name_any()).await?;
            ensure!(pod.owner_references().is_empty(), "{} is owned", pod.name_any());
            ensure!(pod.metadata.deletion_timestamp.is_none(), "{} is going", pod.name_any());
        }
        Ok(())
    })
    .await?;
    // A set recreated under the same name has another uid.
    let (probe, _) = objects.settle(replica_set("probe", 1)).await?;
    sees_pods(&objects, &probe).await?;
    let (_, adopted) = objects.settle(replica_set("web", 3)).await?;
    ensure!(names(&adopted) == names(&pods), "{:?} instead of {:?}", names(&adopted), names(&pods));
    Ok(())
}
