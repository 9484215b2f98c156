//! Replication controllers, as a person with kubectl has them.

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually;
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("replicationcontroller") => {
        "replicationcontroller/keeps_what_is_asked_for": keeps_what_is_asked_for,
        "replicationcontroller/adopts_and_releases": adopts_and_releases,
    }
}

/// A replication controller of pods that are not scheduled.
pub(super) fn controller(name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "schedulerName": "no-scheduler", "containers": [{ "name": "main", "image": "example/main:1" }] },
            },
        },
    })
}

async fn create(kubectl: &Kubectl<'_>, controller: Value) -> Result<()> {
    let manifest = kubectl.manifest(&controller)?;
    kubectl.run(&format!("create -f {manifest}")).await.map(drop)
}

/// The names of the pods with the label `app`, in order.
async fn pods(kubectl: &Kubectl<'_>, app: &str) -> Result<Vec<String>> {
    let listed = kubectl.run(&format!("get pods -l app={app} -o jsonpath={{.items[*].metadata.name}}")).await?;
    Ok(listed.split_whitespace().map(str::to_owned).collect())
}

/// Waits until there are that many pods, and the status reports them.
async fn has(kubectl: &Kubectl<'_>, name: &str, replicas: usize) -> Result<Vec<String>> {
    eventually(&format!("{replicas} pods of {name}"), async || {
        let pods = pods(kubectl, name).await?;
        let status = kubectl.run(&format!("get rc {name} -o jsonpath={{.status}}")).await?;
        let status: Value = serde_json::from_str(&status).context("the status is JSON")?;
        ensure!(pods.len() == replicas && status["replicas"] == json!(replicas), "{pods:?}, {status}");
        ensure!(status.get("terminatingReplicas").is_none(), "{status}");
        Ok(pods)
    })
    .await
}

/// Pods are created, replaced, and deleted with events; a name and a label decide which they are.
async fn keeps_what_is_asked_for(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    create(&kubectl, controller("web", 3)).await?;
    let first = has(&kubectl, "web", 3).await?;
    kubectl.run(&format!("delete pod {} --wait=false", first[0])).await?;
    eventually("the deleted pod to be replaced", async || {
        let now = has(&kubectl, "web", 3).await?;
        ensure!(!now.contains(&first[0]) && now.contains(&first[1]) && now.contains(&first[2]), "{now:?}");
        Ok(())
    })
    .await?;
    kubectl.run("scale rc web --replicas=1").await?;
    has(&kubectl, "web", 1).await?;
    eventually("the events", async || {
        let fields = "jsonpath={range .items[*]}{.source.component} {.reason}{\"\\n\"}{end}";
        let words = ["get", "events", "--field-selector=involvedObject.kind=ReplicationController", "-o", fields];
        let events = kubectl.run_words(&words.map(str::to_owned)).await?;
        let count =
            |reason: &str| events.lines().filter(|line| *line == format!("replication-controller {reason}")).count();
        ensure!((count("SuccessfulCreate"), count("SuccessfulDelete")) == (4, 2), "{events}");
        Ok(())
    })
    .await
}

/// A pod with its labels is adopted, one without them any more released, and orphans of one that was deleted adopted by
/// its successor.
async fn adopts_and_releases(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    create(&kubectl, controller("web", 2)).await?;
    let own = has(&kubectl, "web", 2).await?;
    kubectl.run(&format!("label pod {} app=other --overwrite", own[0])).await?;
    has(&kubectl, "web", 2).await?;
    eventually("the relabelled pod to be released", async || {
        let owners = kubectl.run(&format!("get pod {} -o jsonpath={{.metadata.ownerReferences}}", own[0])).await?;
        ensure!(owners.trim().is_empty(), "{owners}");
        Ok(())
    })
    .await?;
    let before = has(&kubectl, "web", 2).await?;
    kubectl.run("delete rc web --cascade=orphan").await?;
    create(&kubectl, controller("web", 3)).await?;
    let after = has(&kubectl, "web", 3).await?;
    ensure!(before.iter().all(|name| after.contains(name)), "{before:?}, then {after:?}");
    Ok(())
}
