//! Cron jobs, as a person with kubectl has them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::{eventually, throughout};
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("cronjob") => {
        "cronjob/starts_jobs_by_schedule_and_policy": starts_jobs,
    }
}

pub(super) fn cron_job(name: &str, schedule: &str) -> Value {
    let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "main", "image": "example/main:1" }] });
    json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": { "name": name },
        "spec": {
            "schedule": schedule,
            // The status of the jobs is the scenario's.
            "jobTemplate": {
                "metadata": { "labels": { "app": name } },
                "spec": { "managedBy": "example.com/scenario", "template": { "spec": pod } },
            },
        },
    })
}

async fn create(kubectl: &Kubectl<'_>, cron_job: Value) -> Result<()> {
    let manifest = kubectl.manifest(&cron_job)?;
    kubectl.run(&format!("create -f {manifest}")).await.map(drop)
}

async fn get(kubectl: &Kubectl<'_>, what: &str) -> Result<Value> {
    let printed = kubectl.run(&format!("get {what} -o json")).await?;
    serde_json::from_str(&printed).context("kubectl prints JSON")
}

/// The jobs of a cron job: their uids by name.
async fn jobs(kubectl: &Kubectl<'_>, name: &str) -> Result<BTreeMap<String, String>> {
    let listed = get(kubectl, &format!("jobs -l app={name}")).await?;
    let text = |job: &Value, field: &str| job["metadata"][field].as_str().unwrap_or_default().to_owned();
    let items = listed["items"].as_array().cloned().unwrap_or_default();
    Ok(items.iter().map(|job| (text(job, "name"), text(job, "uid"))).collect())
}

/// Waits until there is one job, which the status has as active, and returns its name.
async fn one_active(kubectl: &Kubectl<'_>, name: &str, but: &str) -> Result<String> {
    eventually("one job, which is active", async || {
        let jobs = jobs(kubectl, name).await?;
        let status = get(kubectl, &format!("cronjob {name}")).await?["status"].clone();
        let active = status["active"].as_array().cloned().unwrap_or_default();
        let [(job, uid)] = &jobs.iter().collect::<Vec<_>>()[..] else { anyhow::bail!("there are {jobs:?}") };
        ensure!(active.len() == 1 && active[0]["uid"] == **uid && *job != but, "{jobs:?}, {status}");
        Ok((*job).clone())
    })
    .await
}

/// Sets the last start, so that a daily one is due.
pub(super) async fn last_started(kubectl: &Kubectl<'_>, name: &str, hours_ago: i64) -> Result<()> {
    let at = Timestamp::from_second(kcm_e2e_harness::clock::now().as_second())? - SignedDuration::from_hours(hours_ago);
    let patch = json!({ "status": { "lastScheduleTime": at } });
    kubectl.run(&format!("patch cronjob {name} --subresource=status --type=merge -p {patch}")).await.map(drop)
}

async fn complete(kubectl: &Kubectl<'_>, job: &str) -> Result<()> {
    let now = Timestamp::from_second(kcm_e2e_harness::clock::now().as_second())?;
    let condition = |type_: &str| json!({ "type": type_, "status": "True", "reason": "CompletionsReached", "lastTransitionTime": now });
    let conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
    let status = json!({ "startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions });
    let patch = json!({ "status": status });
    kubectl.run(&format!("patch job {job} --subresource=status --type=merge -p {patch}")).await.map(drop)
}

async fn has_event(kubectl: &Kubectl<'_>, reason: &str) -> Result<()> {
    eventually(&format!("the event {reason}"), async || {
        let events =
            get(kubectl, &format!("events --field-selector=involvedObject.kind=CronJob,reason={reason}")).await?;
        ensure!(events["items"][0]["source"]["component"] == "cronjob-controller", "{events}");
        Ok(())
    })
    .await
}

/// A start that was missed is started; the next one waits for it, or replaces it; a completed job leaves the status, and
/// then goes.
async fn starts_jobs(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    create(&kubectl, cron_job("report", "0 0 * * *")).await?;
    last_started(&kubectl, "report", 36).await?;
    let first = one_active(&kubectl, "report", "").await?;
    has_event(&kubectl, "SuccessfulCreate").await?;
    let job = get(&kubectl, &format!("job {first}")).await?;
    let due = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].as_str();
    ensure!(due.is_some_and(|due| due.ends_with("T00:00:00Z")), "{job}");

    // Another start of the last day.
    let forbid = json!({ "spec": { "timeZone": "Pacific/Kiritimati", "concurrencyPolicy": "Forbid" } });
    kubectl.run(&format!("patch cronjob report -p {forbid}")).await?;
    last_started(&kubectl, "report", 36).await?;
    has_event(&kubectl, "JobAlreadyActive").await?;
    ensure!(one_active(&kubectl, "report", "").await? == first, "another job was started");
    kubectl.run(r#"patch cronjob report -p {"spec":{"concurrencyPolicy":"Replace"}}"#).await?;
    let second = one_active(&kubectl, "report", &first).await?;
    let job = get(&kubectl, &format!("job {second}")).await?;
    let due = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].as_str();
    ensure!(due.is_some_and(|due| due.ends_with("T00:00:00+14:00")), "{job}");

    complete(&kubectl, &second).await?;
    has_event(&kubectl, "SawCompletedJob").await?;
    eventually("the status to have no active job", async || {
        let status = get(&kubectl, "cronjob report").await?["status"].clone();
        ensure!(status.get("active").is_none() && status["lastSuccessfulTime"].is_string(), "{status}");
        Ok(())
    })
    .await?;
    kubectl.run(r#"patch cronjob report -p {"spec":{"successfulJobsHistoryLimit":0,"suspend":true}}"#).await?;
    eventually("the completed job to be deleted", async || {
        let jobs = jobs(&kubectl, "report").await?;
        ensure!(jobs.is_empty(), "{jobs:?}");
        Ok(())
    })
    .await?;
    kubectl.run("create job by-hand --from=cronjob/report").await?;
    has_event(&kubectl, "UnexpectedJob").await?;
    last_started(&kubectl, "report", 36).await?;
    throughout("no job starts while it is suspended", Duration::from_secs(2), async || {
        let jobs = jobs(&kubectl, "report").await?;
        ensure!(jobs.keys().eq(["by-hand"]), "{jobs:?}");
        Ok(())
    })
    .await
}
