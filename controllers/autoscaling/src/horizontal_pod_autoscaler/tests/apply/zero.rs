//! Scaling to zero and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::*;

#[tokio::test(start_paused = true)]
async fn with_the_gate_object_and_external_metrics_scale_to_zero_and_back() {
    let value = Arc::new(AtomicI64::new(0));
    let served = Arc::clone(&value);
    let environment = environment().arguments(&["--feature-gates=HPAScaleToZero=true"]).prepare(move |sandbox| {
        // The API server of the sandbox has the gate off, and refuses a minimum of zero; a kind that it does not know has none.
        sandbox.unregister(&AUTOSCALERS);
        sandbox.register(AUTOSCALERS);
        for group in ["external", "custom"] {
            let served = Arc::clone(&served);
            sandbox.serve_path(&format!("/apis/{group}.metrics.k8s.io"), move |path, _| {
                let version = json!({ "version": "v1beta1" });
                Some(Ok(if path.ends_with(".k8s.io") {
                    json!({ "preferredVersion": version, "versions": [version] })
                } else {
                    json!({ "items": [{ "value": served.load(Ordering::Relaxed).to_string() }] })
                }))
            });
        }
        let service = json!({ "apiVersion": "v1", "kind": "Service", "name": "main" });
        let target = json!({ "type": "Value", "value": "1" });
        let hits = json!({ "type": "Object", "object": {
            "describedObject": service, "metric": { "name": "hits" }, "target": target,
        } });
        for (name, metric) in [("jobs", external("jobs", "1")), ("hits", hits)] {
            deployment(sandbox, name, 2, "1m");
            let behavior = json!({ "scaleDown": { "stabilizationWindowSeconds": 0 } });
            autoscaler_with(sandbox, name, &json!({ "minReplicas": 0, "metrics": [metric], "behavior": behavior }));
        }
    });
    let cluster = start(environment).await;
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    for name in ["jobs", "hits"] {
        assert_eq!(replicas(cluster.sandbox(), name), 0, "{name}");
        let zero = condition(cluster.sandbox(), name, "ScaledToZero");
        assert_eq!(zero, "True ScaledToZero: the HPA controller scaled the workload to zero", "{name}");
        let gone = json!({ "status": { "replicas": 0 } });
        cluster.sandbox().patch_status(&DEPLOYMENTS, &key(name), &gone).expect("it is there");
    }
    let at_rest = |it: &Sandbox| ["jobs", "hits"].iter().all(|name| replicas(it, name) == 0);
    cluster.consistently("there is nothing to do", Duration::from_mins(1), at_rest).await;
    value.store(3, Ordering::Relaxed);
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    for name in ["jobs", "hits"] {
        assert_eq!(replicas(cluster.sandbox(), name), 3, "{name}");
        let zero = condition(cluster.sandbox(), name, "ScaledToZero");
        assert_eq!(zero, "False NotScaledToZero: the HPA controller did not scale the workload to zero", "{name}");
    }
}
