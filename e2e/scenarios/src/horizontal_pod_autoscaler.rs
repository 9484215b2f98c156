//! Horizontal pod autoscalers, by metrics of all three APIs.

use std::time::Duration;

use anyhow::{Result, ensure};
use kcm_e2e_harness::aggregated_api::AggregatedApi;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::{eventually, throughout};
use serde_json::{Value, json};

use super::alone::Alone;

kcm_e2e_harness::scenarios! {
    Setup::of("horizontalpodautoscaling").with_own_managers() => {
        "horizontal-pod-autoscaler/scales_by_metrics": scales_by_metrics,
    }
}

const USAGE: &str = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
const QUERIES: &str = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/queries";
const QUEUE: &str = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue";
const PODS: [&str; 2] = ["web-a", "web-b"];

fn list(kind: &str, version: &str, items: &[Value]) -> Value {
    json!({ "kind": kind, "apiVersion": version, "metadata": {}, "items": items })
}

fn now() -> Result<String> {
    Ok(k8s_openapi::jiff::Timestamp::from_second(kcm_e2e_harness::clock::now().as_second())?.to_string())
}

/// What each pod uses, its queries, and the length of the queue.
fn serve(api: &AggregatedApi, cpu: &str, queries: &str, queue: &str) -> Result<()> {
    let now = now()?;
    let usage = PODS.map(|name| {
        json!({
            "metadata": { "namespace": "default", "name": name }, "timestamp": now, "window": "15s",
            "containers": [{ "name": "main", "usage": { "cpu": cpu, "memory": "1Mi" } }],
        })
    });
    api.set(USAGE, Some(list("PodMetricsList", "metrics.k8s.io/v1beta1", &usage)));
    let of_pods = PODS.map(|name| {
        json!({
            "describedObject": { "kind": "Pod", "namespace": "default", "name": name, "apiVersion": "v1" },
            "metric": { "name": "queries" }, "timestamp": now, "value": queries,
        })
    });
    api.set(QUERIES, Some(list("MetricValueList", "custom.metrics.k8s.io/v1beta2", &of_pods)));
    let queue = json!({ "metricName": "queue", "metricLabels": {}, "timestamp": now, "value": queue });
    api.set(QUEUE, Some(list("ExternalMetricValueList", "external.metrics.k8s.io/v1beta1", &[queue])));
    Ok(())
}

/// Creates a deployment whose pods run and are ready for long, without controller and kubelet.
async fn deploy(alone: &Alone, kubectl: &Kubectl<'_>) -> Result<()> {
    let labels = json!({ "app": "web" });
    let spec = json!({
        "containers": [{ "name": "main", "image": "example/main:1", "resources": { "requests": { "cpu": "100m" } } }],
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": spec },
        },
    });
    alone.apply("default", &deployment).await?;
    kubectl.run("patch deployment web --subresource=status --type=merge -p {\"status\":{\"replicas\":2}}").await?;
    let since = "2026-01-01T00:00:00Z";
    let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": since });
    let status = json!({ "status": { "phase": "Running", "startTime": since, "conditions": [ready] } });
    for name in PODS {
        let pod =
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "labels": labels }, "spec": spec });
        alone.apply("default", &pod).await?;
        kubectl.run(&format!("patch pod {name} --subresource=status --type=merge -p {status}")).await?;
    }
    Ok(())
}

async fn has_replicas(kubectl: &Kubectl<'_>, expected: &str) -> Result<()> {
    let found = kubectl.run("get deployment web -o jsonpath={.spec.replicas}").await?;
    ensure!(found == expected, "there are {found}");
    Ok(())
}

async fn status(kubectl: &Kubectl<'_>) -> Result<Value> {
    let found: Value = serde_json::from_str(&kubectl.run("get hpa web -o json").await?)?;
    Ok(found["status"].clone())
}

async fn has_condition(kubectl: &Kubectl<'_>, type_: &str, expected: &str) -> Result<()> {
    let status = status(kubectl).await?;
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    let found = format!("{} {}: {}", text("status"), text("reason"), text("message"));
    ensure!(found == expected, "{type_} is {found}");
    Ok(())
}

/// The highest metric counts, the status tells all of them, and a metric that fails keeps from scaling down: with the role
/// of the controller and nothing else.
async fn scales_by_metrics(case: Case) -> Result<()> {
    let args = ["--horizontal-pod-autoscaler-sync-period=1s", "--kube-api-qps=1000", "--kube-api-burst=2000"];
    let alone = Alone::start_as_with(&case, "horizontal-pod-autoscaler", &args).await?;
    let kubectl = alone.kubectl("default");
    let api = AggregatedApi::start(alone.plane.logs()).await?;
    serve(&api, "100m", "10", "10")?;
    let served =
        [("metrics.k8s.io", "v1beta1"), ("custom.metrics.k8s.io", "v1beta2"), ("external.metrics.k8s.io", "v1beta1")];
    for object in api.registrations(&served) {
        alone.apply("default", &object).await?;
    }
    for (group, version) in served {
        let wait = format!("wait --for=condition=Available apiservice/{version}.{group} --timeout=60s");
        kubectl.run(&wait).await?;
    }
    deploy(&alone, &kubectl).await?;
    let average = json!({ "type": "AverageValue", "averageValue": "10" });
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "web" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "minReplicas": 1, "maxReplicas": 10,
            "metrics": [
                { "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 } } },
                { "type": "Pods", "pods": { "metric": { "name": "queries" }, "target": average } },
                { "type": "External", "external": { "metric": { "name": "queue" }, "target": average } },
            ],
        },
    });
    alone.apply("default", &autoscaler).await?;

    eventually("the usage to double the replicas", async || has_replicas(&kubectl, "4").await).await?;
    let active = "True ValidMetricFound: the HPA was able to successfully calculate a replica count from cpu resource \
                  utilization (percentage of request)";
    eventually("the conditions", async || has_condition(&kubectl, "ScalingActive", active).await).await?;
    let metrics = json!([
        { "type": "Resource", "resource": { "name": "cpu", "current": { "averageUtilization": 100, "averageValue": "100m" } } },
        { "type": "Pods", "pods": { "metric": { "name": "queries" }, "current": { "averageValue": "10" } } },
        { "type": "External", "external": { "metric": { "name": "queue" }, "current": { "averageValue": "5" } } },
    ]);
    eventually("the metrics of the status", async || {
        let status = status(&kubectl).await?;
        ensure!(status["currentMetrics"] == metrics, "{status}");
        Ok(())
    })
    .await?;

    serve(&api, "100m", "10", "80")?;
    eventually("the queue to scale further", async || has_replicas(&kubectl, "8").await).await?;
    // The others are below their targets now.
    serve(&api, "100m", "5", "80")?;
    api.set(QUEUE, None);
    let failed = "False FailedGetExternalMetric: the HPA was unable to compute the replica count: unable to get external \
                  metric default/queue/nil: unable to fetch metrics from external metrics API: there is no such metric";
    eventually("the failure", async || has_condition(&kubectl, "ScalingActive", failed).await).await?;
    let kept =
        || throughout("nothing is scaled down", Duration::from_secs(3), async || has_replicas(&kubectl, "8").await);
    kept().await?;
    eventually("the events", async || {
        let events: Value = serde_json::from_str(&kubectl.run("get events -o json").await?)?;
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let events = events["items"].as_array().cloned().unwrap_or_default();
        let events: Vec<String> =
            events.iter().map(|it| format!("{}:{}", text(it, "reason"), text(it, "message"))).collect();
        for expected in [
            "SuccessfulRescale:New size: 4; reason: cpu resource utilization (percentage of request) above target",
            "SuccessfulRescale:New size: 8; reason: external metric queue(nil) above target",
            "FailedGetExternalMetric:unable to get external metric default/queue/nil",
        ] {
            ensure!(events.iter().any(|event| event.starts_with(expected)), "{expected} is not among {events:?}");
        }
        Ok(())
    })
    .await?;
    alone.is_refused_nothing()
}
