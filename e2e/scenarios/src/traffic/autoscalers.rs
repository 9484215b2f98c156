//! The script of horizontal pod autoscalers. `autoscaler NAME SPEC` creates one with a deployment of two replicas, `serve
//! METRIC VALUE` sets a metric, and `fail METRIC` withdraws it.

use anyhow::{Context, Result};
use kcm_e2e_harness::aggregated_api::AggregatedApi;
use serde_json::{Value, json};

use super::ROUNDS;
use super::requests::Requests;

pub(super) const CHANGES: [&[&str]; ROUNDS] = [
    &[
        "serve average 20",
        r#"autoscaler average {"behavior":{"scaleUp":{"policies":[{"type":"Pods","value":100,"periodSeconds":1}]},"scaleDown":{"stabilizationWindowSeconds":0}}}"#,
        "serve value 10",
        r#"autoscaler value {"metrics":[{"type":"External","external":{"metric":{"name":"value"},"target":{"type":"Value","value":"10"}}}]}"#,
        "pod value1 value ",
        "pod value2 value ",
        "ready value1 61",
        "ready value2 62",
        "serve usage 50m",
        r#"autoscaler usage {"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]}"#,
        "pod usage1 usage ",
        "pod usage2 usage ",
        "ready usage1 71",
        "ready usage2 72",
        "serve hits 20",
        r#"autoscaler hits {"metrics":[{"type":"Object","object":{"describedObject":{"apiVersion":"v1","kind":"Service","name":"web"},"metric":{"name":"hits"},"target":{"type":"AverageValue","averageValue":"10"}}}]}"#,
        "serve slow 20",
        "autoscaler slow {}",
        "serve limited 20",
        r#"autoscaler limited {"behavior":{"scaleUp":{"policies":[{"type":"Pods","value":1,"periodSeconds":1800}]}}}"#,
        "serve fixed 20",
        r#"autoscaler fixed {"behavior":{"scaleDown":{"selectPolicy":"Disabled"}}}"#,
        "serve lost 20",
        r#"autoscaler lost {"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"nothing"}}"#,
        "serve off 20",
        "autoscaler off {}",
        r#"set deployments/off {"spec":{"replicas":0}}"#,
        "serve rest 20",
        "autoscaler rest {}",
    ],
    &[
        "serve average 45",
        "serve value 20",
        "serve hits 35",
        // Within the tolerance.
        "serve limited 21",
        r#"set horizontalpodautoscalers/fixed {"spec":{"minReplicas":3}}"#,
        "serve slow 40",
    ],
    &["serve average 500", "serve limited 90", "fail value", "serve usage 100m", "serve fixed 10", "serve slow 10"],
    &[
        "serve average 5",
        "serve value 5",
        "unready usage2 72",
        r#"set deployments/off {"spec":{"replicas":2}}"#,
        r#"set horizontalpodautoscalers/lost {"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"lost"}}}"#,
        r#"set horizontalpodautoscalers/hits {"spec":{"maxReplicas":3}}"#,
    ],
    &[
        "serve usage 200m",
        r#"set deployments/average {"spec":{"replicas":9}}"#,
        r#"set horizontalpodautoscalers/off {"spec":{"metrics":[{"type":"External","external":{"metric":{"name":"off"},"target":{"type":"AverageValue","averageValue":"10"}}},{"type":"External","external":{"metric":{"name":"absent"},"target":{"type":"AverageValue","averageValue":"10"}}}]}}"#,
    ],
    &[
        r#"set deployments/hits {"spec":{"replicas":7}}"#,
        "serve off 60",
        "fail usage",
        r#"set horizontalpodautoscalers/limited {"spec":{"behavior":{"scaleUp":{"stabilizationWindowSeconds":3600}}}}"#,
    ],
];

/// While no manager runs.
pub(super) const BETWEEN: &[&str] =
    &["serve average 70", r#"set horizontalpodautoscalers/fixed {"spec":{"minReplicas":6}}"#, "serve usage 50m"];

/// The groups and versions of the metrics APIs.
pub(super) const SERVED: [(&str, &str); 3] =
    [("metrics.k8s.io", "v1beta1"), ("custom.metrics.k8s.io", "v1beta2"), ("external.metrics.k8s.io", "v1beta1")];

/// Makes a change.
pub(super) async fn make(change: &str, requests: &Requests, api: &AggregatedApi) -> Result<()> {
    let words: Vec<&str> = change.splitn(3, ' ').collect();
    match words[..] {
        ["serve", metric, value] => serve(api, metric, Some(value)),
        ["fail", metric] => serve(api, metric, None),
        ["autoscaler", name, spec] => create(requests, name, serde_json::from_str(spec)?).await,
        _ => anyhow::bail!("{change:?} is no change"),
    }
}

async fn create(requests: &Requests, name: &str, special: Value) -> Result<()> {
    requests.make(&format!("owner deployments {name} 2")).await?;
    requests.make(&format!(r#"set deployments/{name}/status {{"status":{{"replicas":2}}}}"#)).await?;
    let average = json!({ "type": "AverageValue", "averageValue": "10" });
    let mut spec = json!({
        "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": name }, "minReplicas": 1, "maxReplicas": 10,
        "metrics": [{ "type": "External", "external": { "metric": { "name": name }, "target": average } }],
    });
    for (field, value) in special.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let autoscaler = json!({ "metadata": { "name": name }, "spec": spec });
    requests.make(&format!("create horizontalpodautoscalers {autoscaler}")).await.map(drop)
}

/// Serves `usage` as the processor time of pods, `hits` of the service `web`, and every other metric as an external one.
fn serve(api: &AggregatedApi, metric: &str, value: Option<&str>) -> Result<()> {
    let now = k8s_openapi::jiff::Timestamp::from_second(kcm_e2e_harness::clock::now().as_second())?.to_string();
    let list = |kind: &str, version: &str, items: Vec<Value>| json!({ "kind": kind, "apiVersion": version, "metadata": {}, "items": items });
    let in_namespace = |group: &str| format!("/apis/{group}/namespaces/default");
    match metric {
        "usage" => {
            let of_pod = |pod: &str, value: &str| {
                json!({
                    "metadata": { "namespace": "default", "name": pod }, "timestamp": now, "window": "15s",
                    "containers": [{ "name": "main", "usage": { "cpu": value, "memory": "1Mi" } }],
                })
            };
            let items = value.map(|value| ["usage1", "usage2"].map(|pod| of_pod(pod, value)).to_vec());
            let path = in_namespace("metrics.k8s.io/v1beta1") + "/pods";
            api.set(&path, items.map(|items| list("PodMetricsList", "metrics.k8s.io/v1beta1", items)));
        }
        "hits" => {
            let value = value.context("it is not withdrawn")?;
            let item = json!({
                "describedObject": { "kind": "Service", "namespace": "default", "name": "web", "apiVersion": "v1" },
                "metric": { "name": "hits" }, "timestamp": now, "value": value,
            });
            let path = in_namespace("custom.metrics.k8s.io/v1beta2") + "/services/web/hits";
            api.set(&path, Some(list("MetricValueList", "custom.metrics.k8s.io/v1beta2", vec![item])));
        }
        _ => {
            let item =
                |value: &str| json!({ "metricName": metric, "metricLabels": {}, "timestamp": now, "value": value });
            let path = in_namespace("external.metrics.k8s.io/v1beta1") + "/" + metric;
            let items = value.map(|value| vec![item(value)]);
            api.set(
                &path,
                items.map(|items| list("ExternalMetricValueList", "external.metrics.k8s.io/v1beta1", items)),
            );
        }
    }
    Ok(())
}
