//! Rollouts that progress, and rollouts that cannot.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::eventually;
use serde_json::json;

use super::{Objects, condition, deployment, held, image, is_waiting, reports, uids};

/// The columns of `kubectl get -w` change during a rollout only as the strategy allows.
pub(super) async fn is_watched(case: Case) -> Result<()> {
    let (objects, kubectl) = (Objects::of(&case), Kubectl::of(&case));
    let mut web = held("web", 3);
    web["spec"]["strategy"] = json!({ "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
    objects.create(web).await?;
    objects.complete_held("web").await?;
    let watch = kubectl.start("get deploy web -w")?;
    let lines = || -> Result<Vec<String>> {
        let log = watch.printed()?;
        Ok(log.lines().map(str::to_owned).collect())
    };
    let shows = async |row: Row| {
        eventually(&format!("the line {row:?}"), async || {
            let last = lines()?.last().cloned().unwrap_or_default();
            ensure!(Row::parse(&last).ok() == Some(row), "the last line is {last:?}");
            Ok(())
        })
        .await
    };
    shows(Row { ready: 3, asked: 3, updated: 3, available: 3 }).await?;
    objects.patch("web", &image(2)).await?;
    for updated in 1..=3 {
        // One new pod exists and waits; all three that must be available are.
        shows(Row { ready: 3, asked: 3, updated, available: 3 }).await?;
        let waiting = eventually("a pod that waits", async || {
            objects.pods_of("web").await?.into_iter().find(is_waiting).context("no pod waits")
        });
        objects.run(&waiting.await?).await?;
    }
    objects.complete("web").await?;
    shows(Row { ready: 3, asked: 3, updated: 3, available: 3 }).await?;

    let lines = lines()?;
    let columns: Vec<&str> = lines[0].split_whitespace().collect();
    ensure!(columns == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"], "{columns:?}");
    let rows = lines[1..].iter().map(|line| Row::parse(line)).collect::<Result<Vec<_>>>()?;
    for row in &rows {
        let within = (3..=4).contains(&row.ready) && (3..=4).contains(&row.available) && row.asked == 3;
        ensure!(within, "{row:?} in {rows:?}");
    }
    // Until the change is observed all are up to date, then none, then more and more.
    let rolling: Vec<u32> = rows.iter().map(|row| row.updated).skip_while(|&updated| updated == 3).collect();
    ensure!(rolling.first() == Some(&0) && rolling.is_sorted(), "{rows:?}");
    ensure!(rolling.last() == Some(&3), "{rows:?}");
    Ok(())
}

/// A line of `kubectl get deploy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    ready: u32,
    asked: u32,
    updated: u32,
    available: u32,
}

impl Row {
    fn parse(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["web", ready, updated, available, _age] = words[..] else { anyhow::bail!("this is no row: {line:?}") };
        let (ready, asked) = ready.split_once('/').context("READY is no fraction")?;
        Ok(Self {
            ready: ready.parse()?,
            asked: asked.parse()?,
            updated: updated.parse()?,
            available: available.parse()?,
        })
    }
}

/// A rollout that fits no node keeps the old pods, is reported as stuck after its deadline, and recovers by `undo` and
/// by a change.
pub(super) async fn is_stuck_and_recovers(case: Case) -> Result<()> {
    let (objects, kubectl) = (Objects::of(&case), Kubectl::of(&case));
    let mut web = deployment("web", 3);
    web["spec"]["progressDeadlineSeconds"] = json!(2);
    objects.settle(web).await?;
    let pods = uids(&objects.pods_of("web").await?);

    kubectl.run("set resources deploy/web --requests=memory=2000Ti").await?;
    gets_stuck(&objects, &kubectl).await?;
    let now = objects.pods_of("web").await?;
    ensure!(now.len() == 4, "{} pods", now.len());
    ensure!(pods.iter().all(|pod| uids(&now).contains(pod)), "an old pod is gone");

    kubectl.run("rollout undo deploy/web").await?;
    kubectl.run("rollout status deploy/web --timeout=60s").await?;
    reports(&objects, "web", "Progressing", ("True", "NewReplicaSetAvailable")).await?;
    eventually("the old pods, and no other", async || {
        let now = uids(&objects.pods_of("web").await?);
        ensure!(now == pods, "{now:?} instead of {pods:?}");
        Ok(())
    })
    .await?;

    kubectl.run("set resources deploy/web --requests=memory=2000Ti").await?;
    gets_stuck(&objects, &kubectl).await?;
    kubectl.run("set resources deploy/web --requests=memory=2Mi").await?;
    kubectl.run("rollout status deploy/web --timeout=60s").await?;
    reports(&objects, "web", "Progressing", ("True", "NewReplicaSetAvailable")).await?;
    let web = objects.complete("web").await?;
    let sets = objects.sets_of(&web).await?;
    ensure!(sets.len() == 3 && super::revision(&web) == 5, "{} sets, revision {}", sets.len(), super::revision(&web));
    Ok(())
}

async fn gets_stuck(objects: &Objects, kubectl: &Kubectl<'_>) -> Result<()> {
    let output = kubectl.refused("rollout status deploy/web --timeout=60s").await?;
    ensure!(output.contains("error: deployment \"web\" exceeded its progress deadline"), "{output}");
    let web = reports(objects, "web", "Progressing", ("False", "ProgressDeadlineExceeded")).await?;
    ensure!(condition(&web, "Available") == Some(("True", "MinimumReplicasAvailable")), "{:?}", web.status);
    let sets = objects.sets_of(&web).await?;
    let newest = sets.last().and_then(|set| set.metadata.name.clone()).unwrap_or_default();
    let message = message(&web, "Progressing");
    ensure!(message == format!("ReplicaSet \"{newest}\" has timed out progressing."), "{message}");
    Ok(())
}

fn message(deployment: &appsv1::Deployment, kind: &str) -> String {
    let conditions = deployment.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .find(|it| it.type_.as_deref() == Some(kind))
        .and_then(|it| it.message.clone())
        .unwrap_or_default()
}
