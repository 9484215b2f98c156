//! Whole collections on an API server in the process.

mod churn;
mod explained;
mod faults;
mod invalid;
mod life;
mod monitors;
mod undecodable;
mod versions;
mod workers;

use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::sandbox::{CONFIG_MAPS, NODES, PODS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use crate::garbage_collector::DESCRIPTOR;

const WIDGETS: Resource = Resource::namespaced("example.com", "v1", "widgets", "Widget");

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop").namespace("other").prepare(|sandbox| sandbox.register(WIDGETS))
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[CONFIG_MAPS, PODS, WIDGETS, NODES]).await;
    cluster
}

/// An object of the sandbox, with its owners.
#[derive(Clone)]
struct Made {
    resource: Resource,
    object: Value,
}

/// Creates an object with these owners, of which those that are true are blocked by it.
fn create(sandbox: &Sandbox, resource: &Resource, name: &str, owners: &[(&Made, bool)]) -> Made {
    create_in(
        sandbox,
        resource,
        "shop",
        name,
        &owners.iter().map(|(owner, blocks)| owner.reference(*blocks)).collect::<Vec<_>>(),
    )
}

fn create_in(sandbox: &Sandbox, resource: &Resource, namespace: &str, name: &str, references: &[Value]) -> Made {
    let mut object = json!({ "metadata": { "name": name, "ownerReferences": references } });
    if resource.namespaced {
        object["metadata"]["namespace"] = json!(namespace);
    }
    if *resource == PODS {
        object["spec"] = json!({ "containers": [{ "name": "main", "image": "image" }] });
    }
    let object = sandbox.create(resource, object).expect("the object must be valid");
    Made { resource: resource.clone(), object }
}

impl Made {
    fn reference(&self, blocks: bool) -> Value {
        json!({
            "apiVersion": self.resource.api_version(), "kind": self.resource.kind, "blockOwnerDeletion": blocks,
            "name": self.object["metadata"]["name"], "uid": self.object["metadata"]["uid"],
        })
    }

    /// A reference to an object that never existed.
    fn ghost() -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "11111111-2222-3333-4444-555555555555" })
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

/// Deletes a config map with a policy, as a client does.
async fn delete(cluster: &TestCluster, name: &str, policy: &str) {
    let body = json!({ "propagationPolicy": policy }).to_string().into_bytes();
    let request = kcm_framework::http::Request::delete(format!("/api/v1/namespaces/shop/configmaps/{name}"))
        .header("content-type", "application/json")
        .body(body)
        .expect("the request is valid");
    let client = cluster.sandbox().client();
    client.request_text(request).await.expect("the object is there");
}

/// The names of the config maps, widgets and pods in `shop`, sorted.
fn names(sandbox: &Sandbox) -> Vec<String> {
    let all = [CONFIG_MAPS, WIDGETS, PODS].into_iter().flat_map(|resource| sandbox.list(&resource, Some("shop")));
    let mut names: Vec<String> =
        all.filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned)).collect();
    names.sort();
    names
}

async fn left(cluster: &TestCluster, expected: &[&str]) {
    cluster.eventually(&format!("these are left: {expected:?}"), |sandbox| names(sandbox) == expected).await;
    // Nothing else follows.
    cluster.settle().await;
    assert_eq!(names(cluster.sandbox()), expected);
}

fn owners(sandbox: &Sandbox, resource: &Resource, name: &str) -> Vec<String> {
    let object = sandbox.get(resource, &key(name)).expect("the object is there");
    let references = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    references.iter().filter_map(|reference| reference["name"].as_str().map(str::to_owned)).collect()
}

fn release(sandbox: &Sandbox, resource: &Resource, name: &str) {
    sandbox.patch(resource, &key(name), &json!({ "metadata": { "finalizers": null } })).expect("it is there");
}

fn hold(sandbox: &Sandbox, resource: &Resource, name: &str) {
    sandbox
        .patch(resource, &key(name), &json!({ "metadata": { "finalizers": ["example.com/hold"] } }))
        .expect("it is there");
}
