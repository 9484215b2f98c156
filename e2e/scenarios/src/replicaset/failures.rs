//! Creations that the API server refuses are reported, retried with back-off, and succeed when the cause is removed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::scheduling::v1 as schedulingv1;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::{eventually, throughout};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{json, to_value};

use super::{Objects, failure_of, replica_set};

/// No pod is created from a template whose priority class does not exist.
pub(super) async fn refused_template(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let class = case.namespace().to_owned();
    let mut set = replica_set("web", 2);
    set["spec"]["template"]["spec"]["priorityClassName"] = to_value(&class)?;
    let set = objects.create_set(set).await?;

    let failure = objects.failure("web").await?;
    ensure!(
        failure.status.as_deref() == Some("True") && failure.reason.as_deref() == Some("FailedCreate"),
        "{failure:?}"
    );
    let message = failure.message.unwrap_or_default();
    ensure!(message.contains(&class), "the message does not say why: {message}");
    let event = eventually("an event with the reason", async || {
        let events = objects.events(&set, "FailedCreate").await?;
        events.into_iter().next().context("there is none")
    })
    .await?;
    ensure!(event.type_.as_deref() == Some("Warning"), "{:?}", event.type_);
    ensure!(event.message == Some(format!("Error creating: {message}")), "{:?}", event.message);

    backs_off(&objects, &set).await?;

    let classes: Api<schedulingv1::PriorityClass> = Api::all(case.client());
    let made = serde_json::from_value(json!({ "metadata": { "name": class }, "value": 7 }))?;
    classes.create(&PostParams::default(), &made).await.context("cannot create the priority class")?;
    let recovered = recovers(&objects, "web").await;
    classes.delete(&class, &DeleteParams::default()).await.context("cannot delete the priority class")?;
    recovered
}

/// Pauses double from 5 ms: 5 s hold ten tries, and some more because the set itself changed.
async fn backs_off(objects: &Objects, set: &appsv1::ReplicaSet) -> Result<()> {
    let tries = async || {
        let events = objects.events(set, "FailedCreate").await?;
        anyhow::Ok(events.iter().map(|event| event.count.unwrap_or(1)).sum::<i32>())
    };
    throughout("tries are few", Duration::from_secs(5), async || {
        let tries = tries().await?;
        ensure!(tries <= 16, "it was tried {tries} times");
        ensure!(objects.owned(set).await?.is_empty(), "a pod was made");
        Ok(())
    })
    .await?;
    ensure!(tries().await? >= 3, "it was tried {} times", tries().await?);
    Ok(())
}

/// A quota of three admits three of five pods, and two more when it is raised.
pub(super) async fn quota(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let quotas: Api<corev1::ResourceQuota> = case.api();
    let three = json!({ "metadata": { "name": "pods" }, "spec": { "hard": { "pods": "3" } } });
    quotas.create(&PostParams::default(), &serde_json::from_value(three)?).await.context("cannot create the quota")?;
    eventually("the quota to be in force", async || {
        let status = quotas.get("pods").await?.status.unwrap_or_default();
        ensure!(status.hard.is_some() && status.used.is_some(), "its status is empty");
        Ok(())
    })
    .await?;

    let set = objects.create_set(replica_set("web", 5)).await?;
    let failure = objects.failure("web").await?;
    ensure!(failure.reason.as_deref() == Some("FailedCreate"), "{failure:?}");
    ensure!(failure.message.as_deref().is_some_and(|message| message.contains("exceeded quota")), "{failure:?}");
    eventually("three pods", async || {
        let (active, status) = (objects.active(&set).await?.len(), objects.sets.get("web").await?.status);
        let reported = status.unwrap_or_default().replicas;
        ensure!(active == 3 && reported == 3, "{active} pods, {reported} reported");
        Ok(())
    })
    .await?;

    let five = json!({ "spec": { "hard": { "pods": "5" } } });
    quotas.patch("pods", &PatchParams::default(), &Patch::Merge(&five)).await.context("cannot raise the quota")?;
    recovers(&objects, "web").await
}

/// The set gets its pods without a change of its own, and reports no failure any more.
async fn recovers(objects: &Objects, name: &str) -> Result<()> {
    let (set, _) = objects.settled(name).await?;
    eventually("the failure to be withdrawn", async || {
        let failure = failure_of(&objects.sets.get(&set.name_any()).await?);
        ensure!(failure.is_none(), "{failure:?}");
        Ok(())
    })
    .await
}
