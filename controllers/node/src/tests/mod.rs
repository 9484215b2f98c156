//! Fixtures that the tests of several controllers share.

pub(crate) mod scenarios;

use std::sync::Arc;

use kcm_framework::api::views::Node;
use kcm_framework::api::{ObjectKey, View as _};
use kcm_testing::TestCluster;
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

/// Verbs and resources that upstream's role `system:controller:node-controller` allows, without events.
const NODE_CONTROLLER: [&str; 14] = [
    "GET nodes",
    "LIST nodes",
    "PUT nodes",
    "DELETE nodes",
    "PATCH nodes",
    "PATCH nodes/status",
    "PUT nodes/status",
    "PATCH pods/status",
    "PUT pods/status",
    "LIST pods",
    "GET pods",
    "DELETE pods",
    "GET leases",
    "LIST leases",
];

/// Asserts that all requests so far fit the role of `node-controller`. Caches are filled by the manager itself.
pub(crate) fn fits_role_of_node_controller(cluster: &TestCluster) {
    let requests = cluster.requests_of("node-controller");
    assert!(!requests.is_empty(), "something is requested");
    for request in requests {
        let path: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        // api/v1/…, or apis/GROUP/VERSION/…
        let path = &path[if path[0] == "api" { 2 } else { 3 }..];
        let path = if path[0] == "namespaces" { &path[2..] } else { path };
        let verb = if request.method == "GET" && path.len() == 1 { "LIST" } else { &request.method };
        let resource = path.get(2).map_or(path[0].to_owned(), |subresource| format!("{}/{subresource}", path[0]));
        let allowed = format!("{verb} {resource}");
        assert!(NODE_CONTROLLER.contains(&&*allowed), "{allowed} is forbidden: {} {}", request.method, request.path);
    }
}
