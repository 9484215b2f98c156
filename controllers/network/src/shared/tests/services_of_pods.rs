//! A service and its pods on an API server in the process.

use kcm_api::{ObjectKey, Resource};
use kcm_testing::sandbox::{PODS, Sandbox};
use serde_json::{Value, json};

use super::merge;

pub(crate) const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");
pub(crate) const NAMESPACE: &str = "shop";

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(NAMESPACE, name)
}

/// Creates the service `web`, whose fields `change` changes.
pub(crate) fn create_service(sandbox: &Sandbox, change: &Value) {
    let spec = json!({
        "selector": { "app": "web" }, "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }],
    });
    let mut service = json!({ "metadata": { "namespace": NAMESPACE, "name": "web" }, "spec": spec });
    merge(&mut service, change);
    sandbox.create(&SERVICES, service).unwrap();
}

/// Creates a pod of the service with the address `10.0.X.Y` of its number, ready, on a node.
pub(crate) fn create_pod_on(sandbox: &Sandbox, number: usize, node: &str) {
    let name = pod_name(number);
    let spec = json!({ "nodeName": node, "containers": [{ "name": "main", "image": "image" }] });
    let pod = json!({ "metadata": { "namespace": NAMESPACE, "name": name, "labels": { "app": "web" } }, "spec": spec });
    sandbox.create(&PODS, pod).unwrap();
    let ip = format!("10.0.{}.{}", number / 256, number % 256);
    let status = json!({ "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }] });
    sandbox.patch_status(&PODS, &key(&name), &json!({ "status": status })).unwrap();
    set_ready(sandbox, number, true);
}

pub(crate) fn pod_name(number: usize) -> String {
    format!("web-{number:04}")
}

pub(crate) fn set_ready(sandbox: &Sandbox, number: usize, ready: bool) {
    let now = sandbox.now().to_string();
    let now = now.split('.').next().unwrap().trim_end_matches('Z').to_owned() + "Z";
    let status = if ready { "True" } else { "False" };
    let condition = json!({ "type": "Ready", "status": status, "lastTransitionTime": now });
    sandbox.patch_status(&PODS, &key(&pod_name(number)), &json!({ "status": { "conditions": [condition] } })).unwrap();
}
