//! Whole quotas on an API server in the process.

mod faults;
mod life;
mod scale;

use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::sandbox::{CONFIG_MAPS, PODS, RESOURCE_QUOTAS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use crate::resourcequota::DESCRIPTOR;

const WIDGETS: Resource = Resource::namespaced("example.com", "v1", "widgets", "Widget");
const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");
const CLAIMS: Resource = Resource::namespaced("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim");

/// An environment with two pods, two config maps and a custom object in the namespace `shop`.
fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop").namespace("other").prepare(|sandbox| {
        sandbox.register(WIDGETS);
        for name in ["a", "b"] {
            create(sandbox, &PODS, name);
            create(sandbox, &CONFIG_MAPS, name);
        }
        create(sandbox, &WIDGETS, "a");
    })
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[RESOURCE_QUOTAS, PODS, CONFIG_MAPS, SERVICES, CLAIMS]).await;
    cluster
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

fn create(sandbox: &Sandbox, resource: &Resource, name: &str) {
    create_in(sandbox, resource, "shop", name);
}

fn create_in(sandbox: &Sandbox, resource: &Resource, namespace: &str, name: &str) {
    let mut object = json!({ "metadata": { "namespace": namespace, "name": name } });
    if *resource == PODS {
        let resources = json!({ "requests": { "cpu": "500m" } });
        object["spec"] = json!({ "containers": [{ "name": "main", "image": "image", "resources": resources }] });
    }
    sandbox.create(resource, object).expect("the object must be valid");
}

/// Creates the quota `quota` with these limits.
fn limit(sandbox: &Sandbox, hard: &Value) {
    limit_in(sandbox, "shop", hard);
}

fn limit_in(sandbox: &Sandbox, namespace: &str, hard: &Value) {
    let quota = json!({ "metadata": { "namespace": namespace, "name": "quota" }, "spec": { "hard": hard } });
    sandbox.create(&RESOURCE_QUOTAS, quota).expect("the quota must be valid");
}

/// `status.used` of the quota.
fn used(sandbox: &Sandbox) -> Value {
    sandbox.get(&RESOURCE_QUOTAS, &key("quota")).map(|quota| quota["status"]["used"].clone()).unwrap_or_default()
}

async fn uses(cluster: &TestCluster, expected: &Value) {
    cluster.eventually(&format!("this is used: {expected}"), |sandbox| used(sandbox) == *expected).await;
}

/// How often the controller has written.
fn writes(cluster: &TestCluster) -> usize {
    let mut requests = cluster.requests_of("resourcequota-controller");
    requests.retain(|request| request.method != "GET");
    assert!(requests.iter().all(|request| request.method == "PUT" && request.path.contains("/status")), "{requests:?}");
    requests.len()
}
