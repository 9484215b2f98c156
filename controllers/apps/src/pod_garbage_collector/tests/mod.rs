mod apply;
mod failed_status;
mod invariants;
mod plan;
mod quarantine;
mod simulation;

use std::sync::Arc;

use kcm_framework::api::views::{Node, PodDisruption};
use kcm_framework::api::{Need, Needs, PartReader, View as _};
use serde_json::{Value, json};

/// A node as the API serves it.
fn node(name: &str, is_ready: bool, taints: &[&str]) -> Value {
    let taints: Vec<Value> =
        taints.iter().map(|key| json!({ "key": key, "value": "nodeshutdown", "effect": "NoExecute" })).collect();
    let status = if is_ready { "True" } else { "Unknown" };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name },
        "spec": { "taints": taints },
        "status": { "conditions": [{ "type": "Ready", "status": status }] },
    })
}

fn view_of(node: &Value) -> Arc<Node> {
    Arc::new(Node::decode(&node.to_string()).unwrap())
}

fn disruptions() -> PartReader<PodDisruption> {
    [Need::part::<PodDisruption>()].into_iter().collect::<Needs>().reader().unwrap()
}
