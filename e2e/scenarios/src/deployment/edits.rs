//! Changes to a whole object, by an editor and by server-side apply.

use anyhow::{Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::Case;
use kube::ResourceExt;
use serde_json::json;

use super::{Objects, deployment, image_of, revision};

/// A change of the template in an editor is rolled out; a change beside the template is not.
pub(super) async fn is_edited(case: Case) -> Result<()> {
    let (objects, kubectl) = (Objects::of(&case), Kubectl::of(&case));
    objects.settle(deployment("web", 2)).await?;
    let output = kubectl.edit("deploy/web", "sed -i s,example/main:1,example/main:2,").await?;
    ensure!(output.trim() == "deployment.apps/web edited", "{output}");
    let web = objects.complete("web").await?;
    let sets = objects.sets_of(&web).await?;
    ensure!(sets.len() == 2 && revision(&web) == 2, "{} sets, revision {}", sets.len(), revision(&web));
    ensure!(image_of(sets[1].spec.template.as_ref()) == Some("example/main:2"), "{:?}", sets[1].spec.template);

    kubectl.edit("deploy/web", "sed -i s,maxSurge:.*,maxSurge:\\ 2,").await?;
    let web = objects.complete("web").await?;
    let sets = objects.sets_of(&web).await?;
    ensure!(sets.len() == 2 && revision(&web) == 2, "{} sets, revision {}", sets.len(), revision(&web));
    Ok(())
}

/// Server-side apply: the controller owns the fields that it writes, and applying again changes nothing.
pub(super) async fn is_applied_by_the_server(case: Case) -> Result<()> {
    let (objects, kubectl) = (Objects::of(&case), Kubectl::of(&case));
    let mut manifest = deployment("web", 2);
    let apply = format!("apply --server-side --field-manager=person -f {}", kubectl.manifest(&manifest)?);
    kubectl.run(&apply).await?;
    let web = objects.complete("web").await?;
    let mut managers: Vec<(String, String)> = web
        .managed_fields()
        .iter()
        .map(|it| (it.manager.clone().unwrap_or_default(), it.subresource.clone().unwrap_or_default()))
        .collect();
    managers.sort_unstable();
    let expected = [("kube-controller-manager", "status"), ("person", "")];
    ensure!(managers.iter().map(|(one, other)| (one.as_str(), other.as_str())).eq(expected), "{managers:?}");

    kubectl.run(&apply).await?;
    let again = objects.complete("web").await?;
    ensure!(again.resource_version() == web.resource_version(), "applying the same changed the deployment");

    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = json!("example/main:2");
    kubectl.manifest(&manifest)?;
    kubectl.run(&apply).await?;
    let web = objects.complete("web").await?;
    ensure!(revision(&web) == 2, "its revision is {}", revision(&web));

    kubectl.run("scale deploy/web --replicas=3").await?;
    objects.complete("web").await?;
    let output = kubectl.refused(&apply).await?;
    ensure!(
        output.contains("conflict with \"kubectl\" with subresource \"scale\"") && output.contains(".spec.replicas"),
        "{output}"
    );
    kubectl.run(&format!("{apply} --force-conflicts")).await?;
    let web = objects.complete("web").await?;
    let sets = objects.sets_of(&web).await?;
    ensure!(sets.len() == 2 && revision(&web) == 2, "{} sets, revision {}", sets.len(), revision(&web));
    Ok(())
}
