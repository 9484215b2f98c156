//! Custom and external metrics, and many autoscalers.

use kcm_testing::sandbox::SandboxOptions;

use super::*;

#[tokio::test(start_paused = true)]
async fn custom_and_external_metrics_scale_too() {
    let environment = environment().prepare(|sandbox| {
        sandbox.serve_path("/apis/custom.metrics.k8s.io", |path, query| {
            let value = |name: &str, value: &str| json!({ "describedObject": { "name": name }, "value": value });
            Some(Ok(match path.strip_prefix("/apis/custom.metrics.k8s.io").unwrap_or_default() {
                "" => json!({ "preferredVersion": { "version": "v1beta2" }, "versions": [{ "version": "v1beta2" }] }),
                "/v1beta2/namespaces/shop/pods/*/queries" => {
                    assert_eq!(query("labelSelector").as_deref(), Some("app=web"));
                    json!({ "items": [value("web-0", "30"), value("web-1", "30")] })
                }
                "/v1beta2/namespaces/shop/services/main/hits" => json!({ "items": [value("main", "80")] }),
                other => panic!("{other}"),
            }))
        });
        sandbox.serve_path("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/jobs", |_, query| {
            assert_eq!(query("labelSelector").as_deref(), Some("queue=a"));
            Some(Ok(json!({ "items": [{ "value": "3" }, { "value": "4" }] })))
        });
        let average = |target: &str| json!({ "type": "AverageValue", "averageValue": target });
        let main = json!({ "apiVersion": "v1", "kind": "Service", "name": "main" });
        let jobs = json!({ "name": "jobs", "selector": { "matchLabels": { "queue": "a" } } });
        for (name, metric) in [
            ("web", json!({ "type": "Pods", "pods": { "metric": { "name": "queries" }, "target": average("10") } })),
            (
                "hits",
                json!({ "type": "Object", "object": {
                "describedObject": main, "metric": { "name": "hits" }, "target": { "type": "Value", "value": "20" },
            } }),
            ),
            ("jobs", json!({ "type": "External", "external": { "metric": jobs, "target": average("1") } })),
        ] {
            deployment(sandbox, name, 2, "1m");
            autoscaler(sandbox, name, (1, 10), &[metric]);
        }
    });
    let cluster = start(environment).await;
    cluster.settle().await;
    let sandbox = cluster.sandbox();
    assert_eq!(["web", "hits", "jobs"].map(|name| replicas(sandbox, name)), [4, 4, 4], "twice as many at once");
    let current = |name: &str| status(sandbox, name)["currentMetrics"][0].clone();
    assert_eq!(current("web")["pods"]["current"], json!({ "averageValue": "30" }));
    assert_eq!(current("hits")["object"]["current"], json!({ "value": "80" }));
    assert_eq!(current("jobs")["external"]["current"], json!({ "averageValue": "3500m" }));
    assert_eq!(current("jobs")["external"]["metric"]["selector"], json!({ "matchLabels": { "queue": "a" } }));
}

/// All in one namespace, so that a walk through it for each of them shows in the duration of the test.
#[tokio::test(start_paused = true)]
async fn ten_thousand_autoscalers_are_synced_within_one_period() {
    const COUNT: usize = 10_000;
    let environment = TestEnvironment::new([DESCRIPTOR])
        .sandbox_options(SandboxOptions { request_log: 60_000, managed_fields: false, ..SandboxOptions::default() })
        .namespace("shop")
        .prepare(|sandbox| {
            sandbox.serve_path("/apis/metrics.k8s.io/", |_, query| {
                let app = query("labelSelector")?.trim_start_matches("app=").to_owned();
                let usage = json!([{ "name": "main", "usage": { "cpu": "50m" } }]);
                let meta = json!({ "name": format!("{app}-0") });
                Some(Ok(json!({ "items": [{ "metadata": meta, "containers": usage }] })))
            });
            // Pods are created with their status: a write less of each.
            sandbox.unregister(&PODS);
            sandbox.register_built_in(PODS, false, false);
            let status = running(sandbox);
            for at in 0..COUNT {
                let name = format!("a{at}");
                let labels = json!({ "app": name, "team": "shop" });
                let meta = json!({ "namespace": "shop", "name": name });
                let container =
                    json!({ "name": "main", "image": "image", "resources": { "requests": { "memory": "1Mi" } } });
                let spec = json!({ "containers": [container], "nodeName": "node" });
                let deployment = json!({ "metadata": meta, "spec": {
                    "replicas": 1, "selector": { "matchLabels": { "app": name } },
                    "template": { "metadata": { "labels": labels }, "spec": spec },
                } });
                sandbox.create(&DEPLOYMENTS, deployment).expect("the deployment must be valid");
                let pod = json!({
                    "metadata": { "namespace": "shop", "name": format!("{name}-0"), "labels": labels }, "spec": spec,
                    "status": status,
                });
                sandbox.create(&PODS, pod).expect("the pod must be valid");
                let target = json!({ "type": "AverageValue", "averageValue": "50m" });
                let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } });
                autoscaler(sandbox, &name, (1, 3), &[metric]);
            }
        });
    let cluster = environment.start().await;
    cluster.advance(Duration::from_secs(14)).await;
    let all = requests(&cluster);
    let of = |method: &str, part: &str| {
        all.iter().filter(|request| request.starts_with(method) && request.contains(part)).count()
    };
    let found = (of("GET", "/scale"), of("GET", "/metrics.k8s.io/"), of("PUT", "/status"), of("PUT", "/scale"));
    assert_eq!(found, (COUNT, COUNT, COUNT, 0), "each once, and nothing is scaled");
    for name in ["a0", "a9999"] {
        let active = condition(cluster.sandbox(), name, "ScalingActive");
        assert!(active.starts_with("True ValidMetricFound"), "{active}");
    }
}
