//! The paths of metrics and of the debug endpoints.

use serde_json::Value;

use super::Port;

const OPEN: &str = "--authorization-always-allow-paths=/healthz,/metrics,/metrics/slis,/debug/*";

/// The content type of delimited protobuf, as Prometheus asks for it.
const PROTOBUF: &str = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

#[tokio::test]
async fn metrics_are_served_in_the_format_that_is_accepted() {
    let port = Port::start(&[OPEN]).await;
    for (accept, content_type) in [
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (PROTOBUF, PROTOBUF),
    ] {
        let answer = port.client.send("HEAD", "/metrics", &[("accept", accept)]).await;
        let expected = format!("content-type: {}", content_type.to_ascii_lowercase());
        assert_eq!(answer.code, 200);
        assert!(answer.head.contains(&expected), "{accept}: {}", answer.head);
    }
    let page = port.client.get("/metrics").await.body;
    assert!(page.contains("# TYPE kubernetes_build_info gauge\n"), "{page}");
}

#[tokio::test]
async fn the_results_of_health_checks_are_counted() {
    let port = Port::start(&[OPEN]).await;
    assert_eq!(port.client.get("/healthz").await.code, 200);
    let page = port.client.get("/metrics/slis").await.body;
    for line in [
        "kubernetes_healthcheck{name=\"ping\",type=\"healthz\"} 1",
        "kubernetes_healthchecks_total{name=\"ping\",status=\"success\",type=\"healthz\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
}

#[tokio::test]
async fn the_debug_endpoints_return_json() {
    let port = Port::start(&[OPEN]).await;
    for (path, list) in [
        ("/debug/queues", "queues"),
        ("/debug/caches", "caches"),
        ("/debug/controllers", "controllers"),
        ("/debug/controllers/test-controller/keys/shop/web", "keys"),
        ("/debug/controllers/test-controller/keys/web", "keys"),
    ] {
        let answer = port.client.get(path).await;
        let value: Value = serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(answer.code == 200 && value[list].is_array(), "{path}: {value}");
    }
    for path in ["/debug/controllers/none/keys/web", "/debug/controllers/test-controller/", "/debug/controllers/none/"]
    {
        assert_eq!(port.client.get(path).await.code, 404, "{path}");
    }
}

#[tokio::test]
async fn without_the_right_nothing_is_shown() {
    let port = Port::start(&[]).await;
    for path in ["/metrics", "/metrics/slis", "/debug/queues", "/debug/controllers/test-controller/keys/shop/web"] {
        assert_eq!(port.client.get(path).await.code, 403, "{path}");
    }
}
