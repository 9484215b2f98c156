//! Whole deletions of namespaces on an API server in the process.

mod faults;
mod life;
mod scale;

use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::sandbox::{CONFIG_MAPS, NAMESPACES, PODS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use super::text;
use crate::namespace::DESCRIPTOR;

const WIDGETS: Resource = Resource::namespaced("example.com", "v1", "widgets", "Widget");

/// An environment with a namespace `shop` that has a config map, a pod that no node runs, and a custom object.
fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop").namespace("other").prepare(|sandbox| {
        sandbox.register(WIDGETS);
        for namespace in ["shop", "other"] {
            create(sandbox, &CONFIG_MAPS, namespace, "map", &[]);
            create(sandbox, &PODS, namespace, "pod", &[]);
            create(sandbox, &WIDGETS, namespace, "widget", &[]);
        }
    })
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[NAMESPACES]).await;
    cluster
}

fn create(sandbox: &Sandbox, resource: &Resource, namespace: &str, name: &str, finalizers: &[&str]) {
    let mut object = json!({ "metadata": { "namespace": namespace, "name": name, "finalizers": finalizers } });
    if *resource == PODS {
        object["spec"] = json!({ "containers": [{ "name": "main", "image": "image" }] });
    }
    sandbox.create(resource, object).expect("the object must be valid");
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

fn shop() -> ObjectKey {
    ObjectKey::cluster_scoped("shop")
}

fn delete(cluster: &TestCluster) {
    cluster.sandbox().delete(&NAMESPACES, &shop()).expect("the namespace is there");
}

async fn gone(cluster: &TestCluster) {
    cluster.eventually("the namespace is gone", |sandbox| sandbox.get(&NAMESPACES, &shop()).is_none()).await;
    for resource in [CONFIG_MAPS, PODS, WIDGETS] {
        assert!(cluster.sandbox().list(&resource, Some("shop")).is_empty(), "{resource}");
        assert_eq!(cluster.sandbox().list(&resource, Some("other")).len(), 1, "{resource} of another namespace");
    }
}

/// A condition of the namespace as `status reason: message`.
fn condition(sandbox: &Sandbox, type_: &str) -> String {
    let namespace = sandbox.get(&NAMESPACES, &shop()).unwrap_or_default();
    let conditions = namespace.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == type_);
    found
        .map(|it| format!("{} {}: {}", text(it, "/status"), text(it, "/reason"), text(it, "/message")))
        .unwrap_or_default()
}

/// Method and path of each write of the controller.
fn writes(cluster: &TestCluster) -> Vec<String> {
    let mut requests = cluster.requests_of("namespace-controller");
    requests.retain(|request| request.method != "GET");
    requests
        .iter()
        .map(|request| format!("{} {}", request.method, request.path.split('?').next().unwrap_or("")))
        .collect()
}
