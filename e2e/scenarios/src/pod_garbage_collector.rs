//! Pods that no kubelet deletes, and terminated pods beyond the threshold.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually_within;
use serde_json::{Value, json};

use super::alone::Alone;

/// Quarantine of a missing node, two rounds, and a margin.
const PATIENCE: Duration = Duration::from_mins(2);

kcm_e2e_harness::scenarios! {
    Setup::of("podgc").with_own_managers() => {
        "pod-garbage-collector/deletes_what_no_kubelet_will": deletes_what_no_kubelet_will,
        "pod-garbage-collector/keeps_the_youngest_terminated_pods": keeps_the_youngest_terminated_pods,
    }
}

/// A control plane without kubelets, where the manager has no more than the role of its account.
async fn start(case: &Case, args: &[&str]) -> Result<Alone> {
    let alone = Alone::start_as_with(case, "pod-garbage-collector", args).await?;
    let kubectl = alone.kubectl("shop");
    kubectl.run("create namespace shop").await?;
    kubectl.run("create serviceaccount default").await?;
    Ok(alone)
}

async fn create(kubectl: &Kubectl<'_>, object: Value) -> Result<()> {
    let manifest = kubectl.manifest(&object)?;
    kubectl.run(&format!("create -f {manifest}")).await.map(drop)
}

/// A pod on a node, or on none, that a finalizer keeps to be looked at.
pub(super) fn pod(name: &str, node: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "finalizers": ["example.com/hold"] },
        "spec": {
            "nodeName": node,
            "schedulerName": "no-scheduler",
            "containers": [{ "name": "main", "image": "example/main:1" }],
        },
    })
}

async fn set_phase(kubectl: &Kubectl<'_>, pod: &str, phase: &str) -> Result<()> {
    let patch = format!(r#"patch pod {pod} --subresource=status -p {{"status":{{"phase":"{phase}"}}}}"#);
    kubectl.run(&patch).await.map(drop)
}

/// The pod, once it has failed and is being deleted.
async fn ended(kubectl: &Kubectl<'_>, name: &str) -> Result<Value> {
    eventually_within(&format!("{name} to be deleted"), PATIENCE, async || {
        let pod = kubectl.run(&format!("get pod {name} -o json")).await?;
        let pod: Value = serde_json::from_str(&pod).context("kubectl prints JSON")?;
        ensure!(pod["status"]["phase"] == "Failed", "its phase is {}", pod["status"]["phase"]);
        ensure!(pod["metadata"]["deletionGracePeriodSeconds"] == 0, "{}", pod["metadata"]);
        Ok(pod)
    })
    .await
}

/// A pod of a missing node, one of a node out of service and one that was never scheduled fail and are deleted; one of a
/// node that is merely not ready stays.
async fn deletes_what_no_kubelet_will(case: Case) -> Result<()> {
    let alone = start(&case, &[]).await?;
    let kubectl = alone.kubectl("shop");
    let taint = json!({ "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute" });
    for (name, taints) in [("dead", json!([taint])), ("silent", json!([]))] {
        let metadata = json!({ "name": name });
        create(
            &kubectl,
            json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": { "taints": taints } }),
        )
        .await?;
    }
    for (name, node) in [("stuck", Some("dead")), ("waiting", Some("silent")), ("orphan", Some("gone")), ("new", None)]
    {
        create(&kubectl, pod(name, node)).await?;
    }
    set_phase(&kubectl, "orphan", "Running").await?;
    kubectl.run("delete pod stuck waiting new --wait=false").await?;
    for name in ["stuck", "new"] {
        let pod = ended(&kubectl, name).await?;
        ensure!(!pod["status"]["conditions"].to_string().contains("DisruptionTarget"), "{}", pod["status"]);
    }
    let orphan = ended(&kubectl, "orphan").await?;
    let conditions = orphan["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let target = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget");
    let target = target.with_context(|| format!("no DisruptionTarget in {}", orphan["status"]))?;
    ensure!(target["status"] == "True" && target["reason"] == "DeletionByPodGC", "{target}");
    ensure!(target["message"] == "PodGC: node no longer exists", "{target}");
    ensure!(target["observedGeneration"] == 1 && target["lastTransitionTime"].is_string(), "{target}");
    ensure!(orphan["status"]["observedGeneration"] == 1, "{}", orphan["status"]);
    let waiting = kubectl.run("get pod waiting -o jsonpath={.status.phase}").await?;
    ensure!(waiting.trim() == "Pending", "the pod of the node that is not ready: {waiting}");
    alone.is_refused_nothing()
}

/// Of four terminated pods with a threshold of two, the evicted one and the oldest other one go.
async fn keeps_the_youngest_terminated_pods(case: Case) -> Result<()> {
    let alone = start(&case, &["--terminated-pod-gc-threshold=2"]).await?;
    let kubectl = alone.kubectl("shop");
    // All before any ends, and in seconds of their own, in which times are kept.
    for name in ["oldest", "older", "young", "evicted"] {
        create(&kubectl, pod(name, None)).await?;
        tokio::time::sleep(Duration::from_millis(1100)).await;
    }
    let evict = r#"patch pod evicted --subresource=status -p {"status":{"phase":"Failed","reason":"Evicted"}}"#;
    kubectl.run(evict).await?;
    for name in ["young", "older", "oldest"] {
        set_phase(&kubectl, name, "Succeeded").await?;
    }
    let free = r#"{"metadata":{"finalizers":null}}"#;
    kubectl.run(&format!("patch pod oldest -p {free}")).await?;
    kubectl.run(&format!("patch pod evicted -p {free}")).await?;
    eventually_within("the evicted and the oldest pod to go", PATIENCE, async || {
        let left = kubectl.run("get pods -o jsonpath={.items[*].metadata.name}").await?;
        ensure!(left.split_whitespace().collect::<Vec<_>>() == ["older", "young"], "{left} are left");
        Ok(())
    })
    .await?;
    let terminating = kubectl.run("get pods -o jsonpath={.items[*].metadata.deletionTimestamp}").await?;
    ensure!(terminating.trim().is_empty(), "a pod within the threshold was deleted");
    alone.is_refused_nothing()
}
