//! Tables of the decisions, and whole reconciles on an API server in the process.

mod apply;
mod hinted_plans;
mod hinted_services;
mod hints;
mod placement;
mod plan;
mod slices;
mod zones;

use std::sync::Arc;

use kcm_framework::api::views::{EndpointSlice, Node, Service};
use kcm_framework::api::{DecodeContext, Need, View as _};
use kcm_framework::informers::Lookup;
use serde_json::{Value, json};

use super::observe::Candidate;
use super::{TOPOLOGY_AWARE_HINTS, TOPOLOGY_MODE};
use crate::shared::slices::{Conditions, Endpoint, ExistingSlice, TargetRef};
use crate::shared::tests::{merge, pod};

/// The spec of a service, whose fields `change` changes.
fn spec(change: &Value) -> Value {
    let mut spec = json!({
        "selector": { "app": "web" }, "clusterIP": "10.96.0.1", "ipFamilies": ["IPv4"],
        "ports": [{ "name": "", "protocol": "TCP", "port": 80, "targetPort": 8080 }],
    });
    merge(&mut spec, change);
    spec
}

/// The service `web` with these annotations, the fields of whose spec `change` changes.
fn annotated_service(annotations: &Value, change: &Value) -> Service {
    let metadata = json!({ "namespace": "shop", "name": "web", "uid": "uid-web", "annotations": annotations });
    let service = json!({ "metadata": metadata, "spec": spec(change) });
    let needs = [TOPOLOGY_MODE, TOPOLOGY_AWARE_HINTS].map(Need::annotation::<Service>).into_iter().collect();
    let context = Arc::new(DecodeContext::new::<Service>(Arc::default(), &needs));
    context.scope(|| Service::decode(&service.to_string())).unwrap()
}

/// A slice of the service `web` with these endpoints, whose fields `change` adds.
fn slice(name: &str, endpoints: &[Endpoint], change: &Value) -> ExistingSlice {
    let labels = json!({
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    });
    let owner = json!({ "apiVersion": "v1", "kind": "Service", "name": "web", "uid": "uid-web", "controller": true });
    let mut slice = json!({
        "metadata": { "namespace": "shop", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7",
            "labels": labels, "ownerReferences": [owner] },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{ "name": "", "protocol": "TCP", "port": 8080 }],
    });
    merge(&mut slice, change);
    ExistingSlice::read(Arc::new(EndpointSlice::decode(&slice.to_string()).unwrap())).unwrap()
}

/// A ready endpoint: the pod of that name, on `node-a`, in zone `a`.
fn endpoint(pod: &str) -> Endpoint {
    let target = TargetRef {
        kind: "Pod".to_owned(),
        namespace: "shop".to_owned(),
        name: pod.to_owned(),
        uid: format!("uid-{pod}"),
        ..TargetRef::default()
    };
    Endpoint {
        addresses: vec!["10.0.0.1".to_owned()],
        conditions: Conditions { ready: Some(true), serving: Some(true), terminating: Some(false) },
        target_ref: Some(target),
        node_name: Some("node-a".to_owned()),
        zone: Some("a".to_owned()),
        ..Endpoint::default()
    }
}

/// An endpoint in a zone, with a hint for another one, where there is one.
fn zoned(pod: &str, zone: &str, hint: &str) -> Endpoint {
    let hints = (!hint.is_empty()).then(|| crate::shared::slices::Hints::zone(hint));
    Endpoint { zone: (!zone.is_empty()).then(|| zone.to_owned()), hints, ..endpoint(pod) }
}

fn unready(endpoint: Endpoint) -> Endpoint {
    let conditions = Conditions { ready: Some(false), serving: Some(false), terminating: Some(false) };
    Endpoint { conditions, ..endpoint }
}

/// A node of a zone, whose fields `change` adds.
fn node(name: &str, zone: &str, change: &Value) -> Arc<Node> {
    let mut node = json!({
        "metadata": { "name": name, "labels": { "topology.kubernetes.io/zone": zone } },
        "status": { "allocatable": { "cpu": "2" }, "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    merge(&mut node, change);
    Arc::new(Node::decode(&node.to_string()).unwrap())
}

/// A ready pod of the service `web` on `node-a` in zone `a`, whose fields `change` adds.
fn candidate(name: &str, change: &Value) -> Candidate {
    let mut fields = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    merge(&mut fields, change);
    Candidate {
        pod: pod(name, &json!({ "app": "web" }), &fields),
        node: Lookup::Found(node("node-a", "a", &json!({}))),
    }
}

/// The names of the pods of endpoints.
fn pods(endpoints: &[Endpoint]) -> Vec<&str> {
    endpoints.iter().map(|endpoint| endpoint.target_ref.as_ref().map_or("", |target| &*target.name)).collect()
}
