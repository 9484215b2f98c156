//! Fixtures that the tests of several controllers share.

use std::sync::Arc;

use kcm_framework::api::views::Node;
use kcm_framework::api::{ObjectKey, View as _};
use kcm_testing::sandbox::{NODES, Sandbox};
use serde_json::{Value, json};

/// The key of a Node.
pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name)
}

pub(crate) fn node_view(node: &Value) -> Arc<Node> {
    Arc::new(Node::decode(&node.to_string()).expect("the fixture must be a node"))
}

/// Creates a Node and puts its status.
pub(crate) fn create_node(sandbox: &Sandbox, node: &Value) {
    let mut object = json!({ "apiVersion": "v1", "kind": "Node" });
    for (field, value) in node.as_object().expect("the fixture must be an object") {
        object[field] = value.clone();
    }
    let name = node["metadata"]["name"].as_str().expect("nodes have names");
    sandbox.create(&NODES, object).expect("the node must be valid");
    if let Some(status) = node.get("status") {
        sandbox.patch_status(&NODES, &key(name), &json!({ "status": status })).expect("the node must exist");
    }
}
