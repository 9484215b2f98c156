mod apply;
mod event_mapping;
mod eviction;
mod invariants;
mod limiter;
mod monitor;
mod simulation;
mod status;
mod tainting;
mod taints;
mod zone;

use std::sync::Arc;

use kcm_framework::api::views::{Node, NodeHealth};
use kcm_framework::api::{DecodeContext, Need, Needs, PartReader, View as _};
use serde_json::{Value, json};

fn needs() -> Needs {
    [Need::part::<NodeHealth>()].into_iter().collect()
}

fn health_reader() -> PartReader<NodeHealth> {
    needs().reader().expect("the part is needed")
}

/// Decodes a Node with its health.
fn node_view(node: &Value) -> Arc<Node> {
    let context = Arc::new(DecodeContext::new::<Node>(Arc::default(), &needs()));
    Arc::new(context.scope(|| Node::decode(&node.to_string())).expect("the fixture must be a node"))
}

/// A Node with these conditions, as type and status.
fn node_with(conditions: &[(&str, &str)], taints: &Value) -> Value {
    let conditions: Vec<Value> =
        conditions.iter().map(|(type_, status)| json!({ "type": type_, "status": status })).collect();
    json!({
        "metadata": { "name": "n", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "taints": taints },
        "status": { "conditions": conditions },
    })
}
