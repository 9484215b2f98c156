//! Custom and external metrics, and many autoscalers.

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
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    let sandbox = cluster.sandbox();
    assert_eq!(["web", "hits", "jobs"].map(|name| replicas(sandbox, name)), [4, 4, 4], "twice as many at once");
    let current = |name: &str| status(sandbox, name)["currentMetrics"][0].clone();
    assert_eq!(current("web")["pods"]["current"], json!({ "averageValue": "30" }));
    assert_eq!(current("hits")["object"]["current"], json!({ "value": "80" }));
    assert_eq!(current("jobs")["external"]["current"], json!({ "averageValue": "3500m" }));
    assert_eq!(current("jobs")["external"]["metric"]["selector"], json!({ "matchLabels": { "queue": "a" } }));
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_autoscalers_are_synced_within_one_period() {
    const COUNT: usize = 10_000;
    let environment = TestEnvironment::new([DESCRIPTOR])
        .sandbox_options(kcm_testing::sandbox::SandboxOptions { request_log: 60_000, ..Default::default() })
        .prepare(|sandbox| {
            sandbox.serve_usage();
            for namespace in 0..100 {
                sandbox.create_namespace(&format!("n{namespace}")).expect("the name is free");
            }
            for at in 0..COUNT {
                let (namespace, name) = (format!("n{}", at % 100), format!("a{at}"));
                let meta = json!({ "namespace": namespace, "name": name });
                let labels = json!({ "app": name });
                let deployment = json!({ "metadata": meta, "spec": {
                    "replicas": 1, "selector": { "matchLabels": labels },
                    "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "main", "image": "image" }] } },
                } });
                sandbox.create(&DEPLOYMENTS, deployment).expect("the deployment must be valid");
                let autoscaler = json!({ "metadata": meta, "spec": {
                    "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": name },
                    "maxReplicas": 3, "metrics": [cpu(50)],
                } });
                sandbox.create(&AUTOSCALERS, autoscaler).expect("the autoscaler must be valid");
            }
        });
    let cluster = environment.start().await;
    cluster.advance(Duration::from_secs(16)).await;
    let all = requests(&cluster);
    let of = |part: &str| all.iter().filter(|request| request.starts_with("GET") && request.contains(part)).count();
    assert_eq!((of("/scale"), of("/metrics.k8s.io/")), (COUNT, COUNT), "each once");
}
