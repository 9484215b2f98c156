//! Whole syncs on an API server in the process.

mod faults;
mod kinds;
mod lies;
mod life;
mod rate_limits;
mod scale;
mod targets;
mod zero;

use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::sandbox::{DEPLOYMENTS, EVENTS, PODS, Sandbox, USAGE_CPU};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use crate::horizontal_pod_autoscaler::DESCRIPTOR;

const AUTOSCALERS: Resource =
    Resource::namespaced("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler");
/// Longer than a sync period.
const PERIOD: Duration = Duration::from_secs(16);

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

/// An environment with the namespace `shop` and the API `metrics.k8s.io`.
fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop").prepare(Sandbox::serve_usage)
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[AUTOSCALERS, PODS]).await;
    cluster
}

/// Makes a deployment with so many pods, of which each requests 100m CPU and uses so much.
fn deployment(sandbox: &Sandbox, name: &str, replicas: i64, usage: &str) {
    let labels = json!({ "app": name });
    let container = json!({ "name": "main", "image": "image", "resources": { "requests": { "cpu": "100m" } } });
    let deployment = json!({
        "metadata": { "namespace": "shop", "name": name },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    });
    sandbox.create(&DEPLOYMENTS, deployment).expect("the deployment must be valid");
    let status = json!({ "status": { "replicas": replicas } });
    sandbox.patch_status(&DEPLOYMENTS, &key(name), &status).expect("the status must be valid");
    for at in 0..replicas {
        let pod_name = format!("{name}-{at}");
        let pod = json!({
            "metadata": {
                "namespace": "shop", "name": pod_name, "labels": labels, "annotations": { USAGE_CPU: usage },
            },
            "spec": { "containers": [container], "nodeName": "node" },
        });
        sandbox.create(&PODS, pod).expect("the pod must be valid");
        run(sandbox, &pod_name);
    }
}

/// Makes a pod run, ready since an hour ago.
fn run(sandbox: &Sandbox, name: &str) {
    sandbox.patch_status(&PODS, &key(name), &json!({ "status": running(sandbox) })).expect("the status must be valid");
}

/// The status of a pod that runs, ready since an hour ago.
fn running(sandbox: &Sandbox) -> Value {
    let since = sandbox.now() - jiff::SignedDuration::from_secs(3600);
    json!({
        "phase": "Running", "startTime": since,
        "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": seconds(since) }],
    })
}

fn seconds(time: Timestamp) -> String {
    kcm_framework::api::time::format_seconds(time)
}

/// A metric with a target for the utilization of CPU requests.
fn cpu(utilization: i32) -> Value {
    let target = json!({ "type": "Utilization", "averageUtilization": utilization });
    json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } })
}

/// Makes an autoscaler of the deployment of its name.
fn autoscaler(sandbox: &Sandbox, name: &str, bounds: (i32, i32), metrics: &[Value]) {
    let autoscaler = json!({
        "metadata": { "namespace": "shop", "name": name },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": name },
            "minReplicas": bounds.0, "maxReplicas": bounds.1, "metrics": metrics,
        },
    });
    sandbox.create(&AUTOSCALERS, autoscaler).expect("the autoscaler must be valid");
}

/// A metric of the external API with a target for its value by pod.
fn external(name: &str, target: &str) -> Value {
    let target = json!({ "type": "AverageValue", "averageValue": target });
    json!({ "type": "External", "external": { "metric": { "name": name }, "target": target } })
}

/// Serves the external metric `high`, of 12; `hangs` never responds.
fn serve_high(sandbox: &Sandbox) {
    sandbox.serve_path("/apis/external.metrics.k8s.io/", |path, _| {
        path.ends_with("/high").then(|| Ok(json!({ "items": [{ "value": "12" }] })))
    });
}

/// Makes an autoscaler whose spec has these fields beside those of one for the deployment of its name.
fn autoscaler_with(sandbox: &Sandbox, name: &str, special: &Value) {
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name });
    let mut spec = json!({ "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10 });
    for (field, value) in special.as_object().expect("it is an object") {
        spec[field] = value.clone();
    }
    let autoscaler = json!({ "metadata": { "namespace": "shop", "name": name }, "spec": spec });
    sandbox.create(&AUTOSCALERS, autoscaler).expect("the autoscaler must be valid");
}

fn replicas(sandbox: &Sandbox, name: &str) -> i64 {
    sandbox.get(&DEPLOYMENTS, &key(name)).expect("it is there")["spec"]["replicas"].as_i64().expect("it is a number")
}

fn status(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.get(&AUTOSCALERS, &key(name)).expect("it is there")["status"].clone()
}

/// A condition of an autoscaler as `status reason: message`.
fn condition(sandbox: &Sandbox, name: &str, type_: &str) -> String {
    let status = status(sandbox, name);
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_);
    let text = |it: &Value, field: &str| it[field].as_str().unwrap_or_default().to_owned();
    found
        .map(|it| format!("{} {}: {}", text(it, "status"), text(it, "reason"), text(it, "message")))
        .unwrap_or_default()
}

/// Reason and message of each event of autoscalers, sorted.
fn events(sandbox: &Sandbox) -> Vec<String> {
    let text = |it: &Value, field: &str| it[field].as_str().unwrap_or_default().to_owned();
    let events = sandbox.list(&EVENTS, Some("shop"));
    let mut events: Vec<String> =
        events.iter().map(|it| format!("{} {}", text(it, "reason"), text(it, "message"))).collect();
    events.sort();
    events
}

/// Method and path of each request of the controller but lists and watches of its caches and events.
fn requests(cluster: &TestCluster) -> Vec<String> {
    let requests = cluster.requests_of("horizontal-pod-autoscaler");
    let requests = requests.iter().filter(|request| !request.path.contains("/events"));
    requests.map(|request| format!("{} {}", request.method, request.path)).collect()
}
