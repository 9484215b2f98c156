//! Metrics APIs that lie, flood and change: a watcher sees that no target ever leaves its bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const VALUES: [&str; 12] =
    ["NaN", "-1", "0", "1n", "99999999999999999999", "-99999999999999999999", "1e30", "", "Inf", "7Ei", "250m", "x"];

fn value(name: &str, source: &Value) -> Value {
    let mut object = json!({ "metadata": { "name": name }, "describedObject": { "kind": "Pod", "name": name } });
    for (field, value) in source.as_object().expect("it is an object") {
        object[field] = value.clone();
    }
    object
}

#[tokio::test(start_paused = true)]
async fn whatever_a_metrics_api_serves_replicas_stay_within_their_bounds() {
    let turn = Arc::new(AtomicUsize::new(0));
    let environment = TestEnvironment::new([DESCRIPTOR]).namespace("shop").prepare(move |sandbox| {
        for (prefix, group) in [
            ("/apis/metrics.k8s.io/", None),
            ("/apis/external.metrics.k8s.io/", None),
            ("/apis/custom.metrics.k8s.io", Some("custom.metrics.k8s.io")),
        ] {
            let turn = Arc::clone(&turn);
            sandbox.serve_path(prefix, move |path, _| {
                if group.is_some_and(|group| path.ends_with(group)) {
                    return Some(Ok(json!({ "preferredVersion": { "version": "v1beta1" }, "versions": [] })));
                }
                let turn = turn.fetch_add(1, Ordering::Relaxed);
                let lie = VALUES[turn % VALUES.len()];
                let time = ["2026-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "later"][turn % 4];
                let usage = json!([{ "name": "main", "usage": { "cpu": lie } }]);
                let item = json!({ "timestamp": time, "window": "-1h", "containers": usage, "value": lie });
                // Of pods that are there, of pods that are not, and of far more than there are.
                let items: Vec<Value> = (0..[1, 3, 500][turn % 3]).map(|at| value(&format!("web-{at}"), &item)).collect();
                Some(Ok(json!({ "items": items })))
            });
        }
        deployment(sandbox, "web", 3, "1");
        let average = json!({ "type": "AverageValue", "averageValue": "100m" });
        let metrics = [
            cpu(50),
            json!({ "type": "Pods", "pods": { "metric": { "name": "q" }, "target": average } }),
            json!({ "type": "Object", "object": {
                "describedObject": { "apiVersion": "v1", "kind": "Service", "name": "web" },
                "metric": { "name": "q" }, "target": average,
            } }),
            json!({ "type": "External", "external": { "metric": { "name": "q" }, "target": average } }),
            json!({ "type": "External", "external": { "metric": { "name": "r" }, "target": { "type": "Value", "value": "1" } } }),
        ];
        autoscaler(sandbox, "web", (2, 9), &metrics);
        deployment(sandbox, "api", 3, "1");
        let policies = json!([{ "type": "Percent", "value": 1000, "periodSeconds": 15 }]);
        let rules = json!({ "stabilizationWindowSeconds": 0, "policies": policies });
        let behavior = json!({ "scaleUp": rules, "scaleDown": rules });
        let fields = json!({ "minReplicas": 2, "maxReplicas": 9, "metrics": metrics, "behavior": behavior });
        autoscaler_with(sandbox, "api", &fields);
        deployment(sandbox, "next", 3, "1");
    });
    let cluster = start(environment).await;
    let within = |it: &Sandbox| ["web", "api", "next"].iter().all(|name| (2..=9).contains(&replicas(it, name)));
    for round in 0..20 {
        // Somebody else scales, and names another target.
        let target = ["next", "api"][round % 2];
        for (resource, name, change) in [
            (&DEPLOYMENTS, "web", json!({ "spec": { "replicas": 2 + round % 8 } })),
            (&DEPLOYMENTS, "api", json!({ "spec": { "replicas": 9 - round % 8 } })),
            (&AUTOSCALERS, "api", json!({ "spec": { "scaleTargetRef": { "name": target } } })),
        ] {
            cluster.sandbox().patch(resource, &key(name), &change).expect("it is there");
        }
        cluster.consistently("replicas stay within 2 and 9", Duration::from_mins(1), within).await;
    }
    let syncs = requests(&cluster).iter().filter(|request| request.contains("/web/scale")).count();
    assert!(syncs >= 79, "each period has a sync: {syncs}");
}
