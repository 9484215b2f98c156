//! The debug pages: the graph in the language of Graphviz, and the uids of objects.
//!
//! # Upstream
//! `dump.go` of `pkg/controller/garbagecollector`, served at `/debug/controllers/garbage-collector-controller/graph`.

use std::collections::BTreeMap;

use kcm_framework::api::Uid;
use kcm_framework::http::{HeaderValue, Request, Response, StatusCode};
use serde_json::json;

use super::graph::{Drawn, Graph};

/// Answers a request beneath the path of the controller: `/graph`, or `/graph?uid=…` for what is joined to these objects;
/// `/uids?namespace=…&name=…` for the uids of the objects of a name, which are the keys of the queues.
pub(super) fn page(graph: &Graph, request: &Request<()>) -> Response<String> {
    let query = request.uri().query().unwrap_or_default();
    let values = |name: &'static str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(move |(found, value)| *found == name && !value.is_empty()).map(|(_, value)| value)
    };
    let (content_type, body) = match request.uri().path() {
        "/graph" => {
            let uids: Vec<Uid> = values("uid").map(Uid::from).collect();
            let drawn = if uids.is_empty() { graph.draw() } else { graph.draw_around(&uids) };
            ("text/vnd.graphviz", dot(&drawn))
        }
        "/uids" => {
            let value = |name| values(name).next().unwrap_or_default();
            let objects = graph.find(value("namespace"), value("name")).into_iter().map(|(resource, uid)| {
                json!({ "resource": resource.to_string(), "kind": resource.kind, "uid": uid.to_string() })
            });
            ("application/json", json!({ "objects": objects.collect::<Vec<_>>() }).to_string())
        }
        _other => {
            let mut response = Response::new("404 page not found\n".to_owned());
            *response.status_mut() = StatusCode::NOT_FOUND;
            return response;
        }
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static(content_type));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// The graph as a document of Graphviz.
pub(super) fn dot(drawn: &BTreeMap<Uid, Drawn>) -> String {
    let mut text = "strict digraph full {\n".to_owned();
    if !drawn.is_empty() {
        text.push_str("  // Node definitions.\n");
    }
    for (uid, node) in drawn {
        push_node(&mut text, uid, node);
    }
    let edges = drawn.iter().flat_map(|(uid, node)| node.owners.iter().map(move |owner| (uid, owner)));
    let mut edges: Vec<String> =
        edges.map(|(uid, owner)| format!("  {:?} -> {:?};\n", uid.to_string(), owner.to_string())).collect();
    edges.sort();
    if !edges.is_empty() {
        text.push_str("  // Edge definitions.\n");
    }
    text.extend(edges);
    text.push_str("}\n");
    text
}

fn push_node(text: &mut String, uid: &Uid, node: &Drawn) {
    let identity = &node.identity;
    let (group, version) = identity.api_version.split_once('/').unwrap_or(("", &identity.api_version));
    let kind = if group.is_empty() {
        format!("{}.{version}", identity.kind)
    } else {
        format!("{}.{version}.{group}", identity.kind)
    };
    let namespace = identity.namespace.as_deref().unwrap_or_default();
    let states = [
        (node.is_terminating, "beingDeleted"),
        (node.waits_for_dependents, "deletingDependents"),
        (node.is_virtual, "virtual"),
    ];
    let states: Vec<&str> = states.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name).collect();
    let mut label = format!("uid={uid}\nnamespace={namespace}\n{kind}/{}\n", identity.name);
    if !states.is_empty() {
        label.push_str(&states.join(","));
        label.push('\n');
    }
    let attributes = [
        ("label", label),
        ("group", group.to_owned()),
        ("version", version.to_owned()),
        ("kind", identity.kind.to_string()),
        ("namespace", namespace.to_owned()),
        ("name", identity.name.to_string()),
        ("uid", uid.to_string()),
        ("missing", "false".to_owned()),
        ("beingDeleted", node.is_terminating.to_string()),
        ("deletingDependents", node.waits_for_dependents.to_string()),
        ("virtual", node.is_virtual.to_string()),
    ];
    text.extend([format!("  {:?} [\n", uid.to_string())]);
    text.extend(attributes.iter().map(|(name, value)| format!("    {name}={value:?}\n")));
    text.push_str("  ];\n");
}
