//! Metrics that a script serves to autoscalers: `usage` is the processor time of the pods whose names begin so, `hits` is of
//! the service `web`, and every other metric is an external one.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::aggregated_api::AggregatedApi;
use crate::clock;
use crate::kubectl::Kubectl;
use crate::wait::eventually;

/// The groups and versions of the metrics APIs.
const SERVED: [(&str, &str); 3] =
    [("metrics.k8s.io", "v1beta1"), ("custom.metrics.k8s.io", "v1beta2"), ("external.metrics.k8s.io", "v1beta1")];

/// The metrics APIs of a control plane, for the namespace `default`.
pub(super) struct Metrics(AggregatedApi);

impl Metrics {
    /// Serves them, and waits until kube-apiserver does.
    pub(super) async fn start(kubectl: &Kubectl<'_>, folder: &Path) -> Result<Self> {
        let api = AggregatedApi::start(folder).await?;
        for object in api.registrations(&SERVED) {
            kubectl.run(&format!("create -f {}", kubectl.manifest(&object)?)).await?;
        }
        for (group, version) in SERVED {
            let service = format!("{version}.{group}");
            eventually("the metrics APIs", async || {
                let status = r#"jsonpath={.status.conditions[?(@.type=="Available")].status}"#;
                let available = kubectl.run(&format!("get apiservice {service} -o {status}")).await?;
                ensure!(available == "True", "{service} is not available");
                Ok(())
            })
            .await?;
        }
        Ok(Self(api))
    }

    /// Serves a metric, or withdraws it.
    pub(super) fn set(&self, metric: &str, value: Option<&str>) -> Result<()> {
        let now = jiff::Timestamp::from_second(clock::now().as_second())?.to_string();
        let (group, path, kind, items) = match metric {
            "usage" => {
                let of_pod = |pod: &str, value: &str| {
                    json!({
                        "metadata": { "namespace": "default", "name": pod }, "timestamp": now, "window": "15s",
                        "containers": [{ "name": "main", "usage": { "cpu": value, "memory": "1Mi" } }],
                    })
                };
                let items = value.map(|value| ["usage1", "usage2"].map(|pod| of_pod(pod, value)).to_vec());
                ("metrics.k8s.io/v1beta1", "pods".to_owned(), "PodMetricsList", items)
            }
            "hits" => {
                let service = json!({ "kind": "Service", "namespace": "default", "name": "web", "apiVersion": "v1" });
                let item = |value: &str| json!({ "describedObject": service, "metric": { "name": "hits" }, "timestamp": now, "value": value });
                let items = value.map(|value| vec![item(value)]);
                ("custom.metrics.k8s.io/v1beta2", "services/web/hits".to_owned(), "MetricValueList", items)
            }
            _ => {
                let item =
                    |value: &str| json!({ "metricName": metric, "metricLabels": {}, "timestamp": now, "value": value });
                let items = value.map(|value| vec![item(value)]);
                ("external.metrics.k8s.io/v1beta1", metric.to_owned(), "ExternalMetricValueList", items)
            }
        };
        let list = |items: Vec<Value>| json!({ "kind": kind, "apiVersion": group, "metadata": {}, "items": items });
        self.0.set(&format!("/apis/{group}/namespaces/default/{path}"), items.map(list));
        Ok(())
    }
}
