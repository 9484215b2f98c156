//! Managers that take turns while all pods of a service are replaced. Scripts compare the rest.

mod published;
mod rolling;

use anyhow::Result;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::Setup;
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("endpointslice").ours().with_own_managers() => {
        "endpointslice/is_handed_over_while_a_service_rolls": rolling::slices_are_handed_over,
    }
    Setup::of("endpoint").ours().with_own_managers() => {
        "endpoints/are_handed_over_while_a_service_rolls": rolling::endpoints_are_handed_over,
    }
}

/// A service that selects `app=NAME`, whose spec `change` changes.
fn service(name: &str, change: &Value) -> Value {
    let mut spec =
        json!({ "selector": { "app": name }, "ports": [{ "name": "http", "port": 80, "targetPort": "http" }] });
    for (field, value) in change.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name }, "spec": spec })
}

/// A pod of the service `app` on a node of no kubelet.
fn pod(name: &str, app: &str, port: i32) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": app } },
        "spec": {
            "nodeName": "endpoints-node",
            "tolerations": [{ "operator": "Exists" }],
            "containers": [{
                "name": "main", "image": "example/main:1", "ports": [{ "name": "http", "containerPort": port }],
            }],
        },
    })
}

fn node() -> Value {
    let labels = json!({ "topology.kubernetes.io/zone": "a" });
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "endpoints-node", "labels": labels } })
}

async fn apply(kubectl: &Kubectl<'_>, object: &Value) -> Result<()> {
    let manifest = kubectl.manifest(object)?;
    kubectl.run(&format!("apply -f {manifest}")).await.map(drop)
}

/// A status with this address.
fn status(ip: &str, ready: bool) -> String {
    let ready = if ready { "True" } else { "False" };
    let condition = json!({ "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let status = json!({ "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }], "conditions": [condition] });
    json!({ "status": status }).to_string()
}
