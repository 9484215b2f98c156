//! Jobs, as a person with kubectl has them. The scenario is the kubelet: it finishes the pods, which no node runs.

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually;
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("job") => {
        "job/counts_each_pod_once": counts_each_pod_once,
        "job/fails_by_index_and_by_policy": fails_by_index_and_by_policy,
        "job/suspends_and_resumes": suspends_and_resumes,
    }
}

/// A job of pods that are not scheduled.
pub(super) fn job(name: &str, spec: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name },
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "schedulerName": "no-scheduler",
                    "containers": [{ "name": "main", "image": "example/main:1" }],
                },
            },
        },
    });
    if let (Some(fields), Value::Object(spec)) = (job["spec"].as_object_mut(), spec) {
        fields.extend(spec);
    }
    job
}

async fn create(kubectl: &Kubectl<'_>, job: Value) -> Result<()> {
    let manifest = kubectl.manifest(&job)?;
    kubectl.run(&format!("create -f {manifest}")).await.map(drop)
}

async fn read(kubectl: &Kubectl<'_>, what: &str) -> Result<Value> {
    let read = kubectl.run(&format!("get {what} -o json")).await?;
    serde_json::from_str(&read).context("kubectl prints JSON")
}

/// The pods of a job that have not finished: name and index.
async fn running(kubectl: &Kubectl<'_>, name: &str) -> Result<Vec<(String, Option<String>)>> {
    let pods = read(kubectl, &format!("pods -l batch.kubernetes.io/job-name={name}")).await?;
    let runs = |pod: &&Value| pod["status"]["phase"] == "Pending" && pod["metadata"]["deletionTimestamp"].is_null();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let named = |pod: &Value| {
        let index = text(&pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]);
        Some((text(&pod["metadata"]["name"])?, index))
    };
    Ok(pods["items"].as_array().into_iter().flatten().filter(runs).filter_map(named).collect())
}

/// Waits until so many pods of a job run.
async fn runs(kubectl: &Kubectl<'_>, name: &str, count: usize) -> Result<Vec<(String, Option<String>)>> {
    eventually(&format!("{count} pods of {name}"), async || {
        let running = running(kubectl, name).await?;
        ensure!(running.len() == count, "{running:?}");
        Ok(running)
    })
    .await
}

/// Ends a pod with an exit code.
async fn finish(kubectl: &Kubectl<'_>, pod: &str, code: i32) -> Result<()> {
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    let terminated = json!({ "exitCode": code, "finishedAt": kcm_e2e_harness::clock::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string() });
    let container = json!({ "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": { "terminated": terminated } });
    let patch = json!({ "status": { "phase": phase, "containerStatuses": [container] } }).to_string();
    kubectl
        .run(&format!("patch pod {pod} --subresource=status --type=merge -p {}", patch.replace(' ', "")))
        .await
        .map(drop)
}

/// Waits for a final condition of a job, and returns the status. No pod may have the finalizer then.
async fn ended(kubectl: &Kubectl<'_>, name: &str, condition: &str, reason: &str) -> Result<Value> {
    let status = eventually(&format!("{name} to be {condition}"), async || {
        let status = read(kubectl, &format!("job {name}")).await?["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let has = |told: &Value| told["type"] == condition && told["status"] == "True" && told["reason"] == reason;
        ensure!(conditions.iter().any(has), "{status}");
        Ok(status)
    })
    .await?;
    let pods = read(kubectl, &format!("pods -l batch.kubernetes.io/job-name={name}")).await?;
    let finalizers = |pod: &Value| pod["metadata"]["finalizers"].is_array();
    ensure!(!pods["items"].as_array().is_some_and(|pods| pods.iter().any(finalizers)), "{pods}");
    ensure!(status["uncountedTerminatedPods"] == json!({}), "{status}");
    Ok(status)
}

/// The counts of succeeded and failed pods.
fn counts(status: &Value) -> (i64, i64) {
    (status["succeeded"].as_i64().unwrap_or(0), status["failed"].as_i64().unwrap_or(0))
}

/// An indexed job whose pods succeed and fail ends with a count for each of them, and events.
async fn counts_each_pod_once(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    create(&kubectl, job("sum", json!({ "completions": 3, "parallelism": 2, "completionMode": "Indexed" }))).await?;
    let first = runs(&kubectl, "sum", 2).await?;
    ensure!(
        first.iter().map(|(_, index)| index.as_deref()).all(|index| [Some("0"), Some("1")].contains(&index)),
        "{first:?}"
    );
    finish(&kubectl, &first[0].0, 1).await?;
    finish(&kubectl, &first[1].0, 0).await?;
    // The failed index is repeated after 10 s.
    for (name, _) in runs(&kubectl, "sum", 2).await? {
        finish(&kubectl, &name, 0).await?;
    }
    let status = ended(&kubectl, "sum", "Complete", "CompletionsReached").await?;
    ensure!(status["completedIndexes"] == "0-2" && counts(&status) == (3, 1), "{status}");
    eventually("the events", async || {
        let fields = "jsonpath={range .items[*]}{.source.component} {.reason}{\"\\n\"}{end}";
        let words = ["get", "events", "--field-selector=involvedObject.kind=Job", "-o", fields];
        let events = kubectl.run_words(&words.map(str::to_owned)).await?;
        let count = |reason: &str| events.lines().filter(|line| *line == format!("job-controller {reason}")).count();
        ensure!((count("SuccessfulCreate"), count("Completed")) == (4, 1), "{events}");
        Ok(())
    })
    .await
}

/// A limit for each index fails the index, and a rule of the failure policy the job.
async fn fails_by_index_and_by_policy(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    let rule =
        |action: &str, code: i32| json!({ "action": action, "onExitCodes": { "operator": "In", "values": [code] } });
    let spec = json!({
        "completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 0, "maxFailedIndexes": 2,
        "podFailurePolicy": { "rules": [rule("FailIndex", 7), rule("FailJob", 42)] },
    });
    create(&kubectl, job("indexed", spec.clone())).await?;
    for ((name, _), code) in runs(&kubectl, "indexed", 3).await?.into_iter().zip([7, 0, 0]) {
        finish(&kubectl, &name, code).await?;
    }
    let status = ended(&kubectl, "indexed", "Failed", "FailedIndexes").await?;
    ensure!(
        counts(&status) == (2, 1) && status["failedIndexes"].as_str().is_some_and(|failed| failed.len() == 1),
        "{status}"
    );

    create(&kubectl, job("policy", spec)).await?;
    let pods = runs(&kubectl, "policy", 3).await?;
    finish(&kubectl, &pods[0].0, 42).await?;
    let status = ended(&kubectl, "policy", "Failed", "PodFailurePolicy").await?;
    let message = &status["conditions"][0]["message"];
    ensure!(
        message
            .as_str()
            .is_some_and(|text| text.ends_with("failed with exit code 42 matching FailJob rule at index 1")),
        "{message}"
    );
    ensure!(counts(&status) == (0, 3), "the pods that ran count as failed: {status}");
    Ok(())
}

/// A suspended job has no pods and no start time; resumed, it runs to its end.
async fn suspends_and_resumes(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    create(&kubectl, job("sum", json!({ "completions": 2, "parallelism": 2 }))).await?;
    runs(&kubectl, "sum", 2).await?;
    kubectl.run(r#"patch job sum -p {"spec":{"suspend":true}}"#).await?;
    eventually("the job to be suspended", async || {
        let status = read(&kubectl, "job sum").await?["status"].clone();
        ensure!(status["conditions"][0]["type"] == "Suspended" && status["startTime"].is_null(), "{status}");
        ensure!(running(&kubectl, "sum").await?.is_empty(), "pods are left");
        Ok(())
    })
    .await?;
    kubectl.run(r#"patch job sum -p {"spec":{"suspend":false}}"#).await?;
    for (name, _) in runs(&kubectl, "sum", 2).await? {
        finish(&kubectl, &name, 0).await?;
    }
    let status = ended(&kubectl, "sum", "Complete", "CompletionsReached").await?;
    ensure!(counts(&status) == (2, 0) && status["startTime"].is_string(), "{status}");
    Ok(())
}
