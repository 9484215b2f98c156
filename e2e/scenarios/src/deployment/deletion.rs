//! `kubectl delete` with each propagation policy; the garbage collector runs beside the manager.

use anyhow::{Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{Objects, deployment, is_controlled_by, revision, uids};

/// In the background the deployment is deleted first; in the foreground it waits for its pods, and nothing is created.
pub(super) async fn with_its_pods(case: Case) -> Result<()> {
    let (objects, kubectl) = (Objects::of(&case), Kubectl::of(&case));
    objects.settle(deployment("back", 2)).await?;
    objects.settle(deployment("fore", 2)).await?;
    let output = kubectl.run("delete deploy/back").await?;
    ensure!(output.starts_with("deployment.apps \"back\" deleted"), "{output}");
    ensure!(objects.deployments.get_opt("back").await?.is_none(), "the deployment is still there");

    let pods = objects.pods_of("fore").await?;
    let held = pods[0].name_any();
    hold(&objects, &held, json!(["example.com/hold"])).await?;
    kubectl.run("delete deploy/fore --cascade=foreground --wait=false").await?;
    eventually("only the held pod to be left", async || {
        let left = objects.pods_of("fore").await?;
        ensure!(left.len() == 1 && left[0].name_any() == held, "{} pods are left", left.len());
        ensure!(left[0].metadata.deletion_timestamp.is_some(), "it was spared");
        Ok(())
    })
    .await?;
    let fore = objects.deployments.get("fore").await?;
    ensure!(fore.metadata.deletion_timestamp.is_some(), "it is not being deleted");
    ensure!(objects.sets_of(&fore).await?.len() == 1, "it has {} sets", objects.sets_of(&fore).await?.len());
    hold(&objects, &held, json!(null)).await?;
    kubectl.run("wait --for=delete deploy/fore --timeout=60s").await?;
    eventually("nothing to be left", async || {
        let sets = objects.sets.list(&kube::api::ListParams::default()).await?.items.len();
        let pods = objects.pods_of("back").await?.len() + objects.pods_of("fore").await?.len();
        ensure!(sets == 0 && pods == 0, "{sets} sets and {pods} pods are left");
        Ok(())
    })
    .await
}

async fn hold(objects: &Objects, pod: &str, finalizers: serde_json::Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    objects.pods.patch(pod, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// A deployment recreated under the same name adopts the orphaned replica set, and no pod is created.
pub(super) async fn leaves_orphans(case: Case) -> Result<()> {
    let (objects, kubectl) = (Objects::of(&case), Kubectl::of(&case));
    let web = objects.settle(deployment("web", 3)).await?;
    let (set, pods) = (objects.sets_of(&web).await?[0].clone(), uids(&objects.pods_of("web").await?));
    kubectl.run("delete deploy/web --cascade=orphan").await?;
    let orphan = objects.sets.get(&set.name_any()).await?;
    ensure!(orphan.owner_references().is_empty(), "it is owned by {:?}", orphan.owner_references());

    let manifest = kubectl.manifest(&deployment("web", 3))?;
    kubectl.run(&format!("create -f {manifest}")).await?;
    let web = objects.complete("web").await?;
    let adopted = objects.sets.get(&set.name_any()).await?;
    ensure!(is_controlled_by(&adopted, &web), "it is owned by {:?}", adopted.owner_references());
    let sets = objects.sets_of(&web).await?;
    ensure!(sets.len() == 1 && sets[0].uid() == set.uid(), "{} sets", sets.len());
    ensure!(revision(&web) == 1, "its revision is {}", revision(&web));
    ensure!(uids(&objects.pods_of("web").await?) == pods, "pods were exchanged");
    Ok(())
}
