//! The metrics of slices and autoscalers, which both managers show only with services and autoscalers.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::control_plane::free_ports;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::peer_metrics::PeerMetrics;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::eventually;
use serde_json::{Value, json};

use super::{differences, exposition, table};

/// How the names of the metrics begin.
const PREFIXES: [&str; 3] =
    ["endpoint_slice_controller_", "endpoint_slice_mirroring_controller_", "horizontal_pod_autoscaler_controller_"];

/// A node.
const NODE: &str = "traffic-node";

/// A deployment of one pod, and an autoscaler of it by a metric that is not served.
fn scaled(name: &str, min_replicas: i32) -> [Value; 2] {
    let labels = json!({ "app": name });
    let containers = json!([{ "name": "main", "image": "example/main:1" }]);
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": containers } });
    let cpu = json!({ "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 } });
    [
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
            "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": template },
        }),
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": name },
            "spec": {
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": name },
                "minReplicas": min_replicas, "maxReplicas": 4,
                "metrics": [{ "type": "Resource", "resource": cpu }],
            },
        }),
    ]
}

/// A service with a pod, one with endpoints of a user, and two autoscalers: one whose target has too few pods, so that it
/// needs no metrics, and one that needs them.
fn objects() -> Value {
    let labels = json!({ "app": "served" });
    let pod = json!({
        "nodeName": NODE, "tolerations": [{ "operator": "Exists" }],
        "containers": [{ "name": "main", "image": "example/main:1" }],
    });
    let ports = json!([{ "port": 80 }]);
    let service = json!({ "selector": labels, "ports": ports, "trafficDistribution": "PreferClose" });
    let mut items = vec![
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": NODE } }),
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "served", "labels": labels }, "spec": pod }),
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "served" }, "spec": service }),
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "plain" }, "spec": { "ports": ports } }),
        json!({
            "apiVersion": "v1", "kind": "Endpoints", "metadata": { "name": "plain" },
            "subsets": [{ "addresses": [{ "ip": "10.9.0.1" }], "ports": ports }],
        }),
    ];
    items.extend(scaled("few", 2));
    items.extend(scaled("enough", 1));
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

/// Each metric of the table is served with samples, and is as the table says.
pub(super) async fn serves_the_table(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    let [port] = free_ports()?;
    let metrics = PeerMetrics::at(port)?;
    let args = metrics.args();
    let mut manager = case.start(case.subject(), &args.each_ref().map(String::as_str))?;
    let manifest = kubectl.manifest(&objects())?;
    kubectl.run(&format!("apply -f {manifest}")).await?;
    let status = json!({ "status": { "phase": "Running", "podIP": "10.9.0.2", "podIPs": [{ "ip": "10.9.0.2" }] } });
    kubectl.run(&format!("patch pod served --subresource=status -p {status}")).await?;
    let is_of_traffic = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let rows: BTreeMap<_, _> = table().into_iter().filter(|(name, _)| is_of_traffic(name)).collect();
    let scrape = async || {
        let page = metrics.read().await?;
        let mut families = exposition::read(&page);
        families.retain(|name, _| is_of_traffic(name));
        let has_samples = |name: &str| page.lines().any(|line| line.starts_with(name));
        let missing: Vec<_> = rows.keys().filter(|name| !families.contains_key(**name) || !has_samples(name)).collect();
        ensure!(missing.is_empty(), "not served yet: {missing:?}");
        Ok(families)
    };
    let families = eventually("all metrics of traffic are served", scrape).await?;
    manager.must_run().context("after the scrape")?;
    kubectl.run(&format!("delete node {NODE}")).await?;
    let differences = differences(&rows, &families);
    ensure!(differences.is_empty(), "the table differs:\n{}", differences.join("\n"));
    Ok(())
}
