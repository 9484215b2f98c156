//! `kubectl rollout`, `scale` and `set`.

use anyhow::{Result, ensure};
use kcm_e2e_harness::kubectl::{Kubectl, revisions};
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use serde_json::json;

use super::{Objects, annotation, deployment, image_of, reports, revision, uids};

/// `status`, `history` and `undo`: each rollout is a revision, and a rollback makes an old revision the newest.
pub(super) async fn rolls_out_and_back(case: Case) -> Result<()> {
    let (objects, kubectl) = (Objects::of(&case), Kubectl::of(&case));
    let manifest = kubectl.manifest(&deployment("web", 3))?;
    kubectl.run(&format!("apply -f {manifest}")).await?;
    rolled_out(&kubectl).await?;
    caused(&kubectl, "first", &[(1, "first")]).await?;

    kubectl.run("set image deploy/web main=example/main:2").await?;
    rolled_out(&kubectl).await?;
    caused(&kubectl, "second", &[(1, "first"), (2, "second")]).await?;
    let output = kubectl.run("rollout history deploy/web --revision=1").await?;
    ensure!(output.contains("example/main:1") && output.contains("change-cause: first"), "{output}");

    let output = kubectl.run("rollout undo deploy/web").await?;
    ensure!(output.starts_with("deployment.apps/web rolled back\n"), "{output}");
    rolled_out(&kubectl).await?;
    has_history(&kubectl, &[(2, "second"), (3, "first")]).await?;
    kubectl.run("rollout undo deploy/web --to-revision=2").await?;
    rolled_out(&kubectl).await?;
    has_history(&kubectl, &[(3, "first"), (4, "second")]).await?;
    let output = kubectl.refused("rollout undo deploy/web --to-revision=9").await?;
    ensure!(output.contains("unable to find specified revision 9 in history"), "{output}");

    let web = objects.complete("web").await?;
    let sets = objects.sets_of(&web).await?;
    let [old, new] = sets.as_slice() else { anyhow::bail!("{} replica sets", sets.len()) };
    for (set, replicas, image, passed) in [(old, 0, "example/main:1", "1"), (new, 3, "example/main:2", "2")] {
        ensure!(set.spec.replicas == Some(replicas), "{} asks for {:?}", set.name_any(), set.spec.replicas);
        let found = image_of(set.spec.template.as_ref());
        ensure!(found == Some(image), "{} has {found:?}", set.name_any());
        let found = annotation(set, "deployment.kubernetes.io/revision-history");
        ensure!(found == Some(passed), "the history of {} is {found:?}", set.name_any());
    }
    ensure!(revision(&web) == 4, "its revision is {}", revision(&web));
    Ok(())
}

async fn rolled_out(kubectl: &Kubectl<'_>) -> Result<()> {
    let output = kubectl.run("rollout status deploy/web --timeout=60s").await?;
    ensure!(output.trim_end().ends_with("deployment \"web\" successfully rolled out"), "{output}");
    Ok(())
}

/// Annotates the cause of the last change, and waits until the history lists it.
async fn caused(kubectl: &Kubectl<'_>, cause: &str, expected: &[(u64, &str)]) -> Result<()> {
    kubectl.run(&format!("annotate deploy/web --overwrite kubernetes.io/change-cause={cause}")).await?;
    has_history(kubectl, expected).await
}

async fn has_history(kubectl: &Kubectl<'_>, expected: &[(u64, &str)]) -> Result<()> {
    let expected: Vec<_> = expected.iter().map(|&(revision, cause)| (revision, cause.to_owned())).collect();
    eventually("the history to list them", async || {
        let found = revisions(&kubectl.run("rollout history deploy/web").await?);
        ensure!(found == expected, "it is {found:?}");
        Ok(())
    })
    .await
}

/// While paused, a deployment scales but does not roll out changes; resumed, it rolls them out as one revision.
pub(super) async fn pauses_and_resumes(case: Case) -> Result<()> {
    let (objects, kubectl) = (Objects::of(&case), Kubectl::of(&case));
    objects.settle(deployment("web", 2)).await?;
    kubectl.run("set image deploy/web main=example/main:2").await?;
    rolled_out(&kubectl).await?;
    kubectl.run("rollout pause deploy/web").await?;
    reports(&objects, "web", "Progressing", ("Unknown", "DeploymentPaused")).await?;
    kubectl.run("set image deploy/web main=example/main:3").await?;
    kubectl.run("set env deploy/web COLOUR=blue").await?;
    kubectl.run("scale deploy/web --replicas=4").await?;
    let web = eventually("four of the second template", async || {
        let web = objects.deployments.get("web").await?;
        let status = web.status.clone().unwrap_or_default();
        let (available, updated) = (status.available_replicas, status.updated_replicas.unwrap_or_default());
        ensure!(available == Some(4) && updated == 0, "{available:?} available, {updated} updated");
        ensure!(status.observed_generation == web.metadata.generation, "it has not observed its last change");
        Ok(web)
    })
    .await?;
    ensure!(objects.sets_of(&web).await?.len() == 2 && revision(&web) == 2, "a paused deployment has rolled");
    let output = kubectl.refused("rollout undo deploy/web").await?;
    ensure!(output.contains("you cannot rollback a paused deployment"), "{output}");
    let output = kubectl.refused("rollout restart deploy/web").await?;
    ensure!(output.contains("can't restart paused deployment"), "{output}");

    kubectl.run("rollout resume deploy/web").await?;
    rolled_out(&kubectl).await?;
    let web = objects.complete("web").await?;
    let sets = objects.sets_of(&web).await?;
    ensure!(sets.len() == 3 && revision(&web) == 3, "{} sets, revision {}", sets.len(), revision(&web));
    ensure!(image_of(sets[2].spec.template.as_ref()) == Some("example/main:3"), "{:?}", sets[2].spec.template);
    reports(&objects, "web", "Progressing", ("True", "NewReplicaSetAvailable")).await?;
    Ok(())
}

/// Scaling keeps pods and revision; a restart replaces every pod and adds a revision.
pub(super) async fn scales_and_restarts(case: Case) -> Result<()> {
    let (objects, kubectl) = (Objects::of(&case), Kubectl::of(&case));
    objects.settle(deployment("web", 2)).await?;
    let first = uids(&objects.pods_of("web").await?);
    kubectl.run("scale deploy/web --replicas=5").await?;
    objects.complete("web").await?;
    let more = uids(&objects.pods_of("web").await?);
    ensure!(first.iter().all(|pod| more.contains(pod)), "scaling up replaced a pod");
    let output = kubectl.refused("scale deploy/web --current-replicas=2 --replicas=9").await?;
    ensure!(output.contains("Expected replicas to be 2, was 5"), "{output}");
    kubectl.run("scale deploy/web --current-replicas=5 --replicas=3").await?;
    let web = objects.complete("web").await?;
    let before = uids(&objects.pods_of("web").await?);
    ensure!(before.iter().all(|pod| more.contains(pod)), "scaling down made a pod");
    let sets = objects.sets_of(&web).await?;
    ensure!(sets.len() == 1 && revision(&web) == 1, "scaling made {} sets, revision {}", sets.len(), revision(&web));
    let wanted = ["desired-replicas", "max-replicas"].map(|it| format!("deployment.kubernetes.io/{it}"));
    let found = wanted.each_ref().map(|it| annotation(&sets[0], it));
    ensure!(found == [Some("3"), Some("4")], "desired and max replicas are {found:?}");

    kubectl.run("rollout restart deploy/web").await?;
    rolled_out(&kubectl).await?;
    let web = objects.complete("web").await?;
    let sets = objects.sets_of(&web).await?;
    ensure!(sets.len() == 2 && revision(&web) == 2, "{} sets, revision {}", sets.len(), revision(&web));
    let template = json!(sets[1].spec.template);
    let restarted = &template["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"];
    ensure!(restarted.is_string(), "the new template is {template}");
    eventually("every pod to be another one", async || {
        let after = uids(&objects.pods_of("web").await?);
        ensure!(after.len() == 3 && !after.iter().any(|pod| before.contains(pod)), "{after:?} after {before:?}");
        Ok(())
    })
    .await
}
