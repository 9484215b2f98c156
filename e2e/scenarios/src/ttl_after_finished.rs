//! Finished jobs with a time to live.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::jiff::Timestamp;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::{eventually, throughout};
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("ttl-after-finished") => {
        "ttl-after-finished/deletes_finished_jobs": deletes_finished_jobs,
    }
}

/// A job that another controller manages, so that its status is the scenario's.
pub(super) fn job(name: &str, time_to_live: Option<i32>) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name },
        "spec": {
            "managedBy": "example.com/scenario",
            "ttlSecondsAfterFinished": time_to_live,
            "template": {
                "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "example/main:1" }] },
            },
        },
    })
}

async fn create(kubectl: &Kubectl<'_>, job: Value) -> Result<()> {
    let manifest = kubectl.manifest(&job)?;
    kubectl.run(&format!("create -f {manifest}")).await.map(drop)
}

/// Puts the status of a job that has failed now.
pub(super) async fn fail(kubectl: &Kubectl<'_>, name: &str) -> Result<()> {
    let now = Timestamp::from_second(kcm_e2e_harness::clock::now().as_second())?;
    let condition = |type_: &str| json!({ "type": type_, "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": now });
    let status = json!({ "startTime": now, "conditions": [condition("FailureTarget"), condition("Failed")] });
    let patch = json!({ "status": status }).to_string();
    kubectl.run(&format!("patch job {name} --subresource=status --type=merge -p {patch}")).await.map(drop)
}

async fn gone(kubectl: &Kubectl<'_>, name: &str) -> Result<()> {
    eventually(&format!("job {name} to be gone"), async || {
        let found = kubectl.run(&format!("get job {name} --ignore-not-found -o name")).await?;
        ensure!(found.trim().is_empty(), "it is there");
        Ok(())
    })
    .await
}

/// A failed job goes after its time to live; one without a time to live, or that has not finished, stays until that
/// changes.
async fn deletes_finished_jobs(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    for (name, time_to_live) in [("short", Some(2)), ("endless", None), ("running", Some(0)), ("long", Some(3600))] {
        create(&kubectl, job(name, time_to_live)).await?;
    }
    for name in ["short", "endless", "long"] {
        fail(&kubectl, name).await?;
    }
    gone(&kubectl, "short").await?;
    throughout("the others stay", Duration::from_secs(2), async || {
        let left = kubectl.run("get jobs -o jsonpath={.items[*].metadata.name}").await?;
        ensure!(left.split_whitespace().collect::<Vec<_>>() == ["endless", "long", "running"], "{left} are left");
        Ok(())
    })
    .await?;
    fail(&kubectl, "running").await?;
    kubectl.run(r#"patch job endless -p {"spec":{"ttlSecondsAfterFinished":1}}"#).await?;
    gone(&kubectl, "running").await?;
    gone(&kubectl, "endless").await?;
    let left = kubectl.run("get jobs -o name").await?;
    ensure!(left.trim() == "job.batch/long", "{left}");
    Ok(())
}
