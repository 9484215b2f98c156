//! The scenarios, and their common parts.

mod simulation;

use kcm_framework::ControllerDescriptor;
use kcm_framework::api::ObjectKey;
use kcm_simulation::rules::{
    is_active, is_ready, metadata_of_users_is_kept, observed_generation_never_falls, statuses_change_nothing_else,
};
use kcm_simulation::{Invariant, Scenario};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{NAMESPACES, PODS, Sandbox};
use serde_json::{Value, json};

const NAMESPACE: &str = "shop";

/// The rules of every loop. Deletions of collections carry no uid.
const RULES: &[Invariant] = &[metadata_of_users_is_kept, observed_generation_never_falls, statuses_change_nothing_else];

fn scenario<const N: usize>(name: &str, controllers: [ControllerDescriptor; N], rules: &[Invariant]) -> Scenario {
    let scenario = Scenario::new(name, &TestEnvironment::new(controllers))
        .object(&NAMESPACES, json!({ "metadata": { "name": NAMESPACE } }));
    rules.iter().chain(RULES).fold(scenario, |scenario, rule| scenario.invariant(*rule))
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(NAMESPACE, name)
}

/// An object `web` in the namespace.
fn web(spec: &Value) -> Value {
    json!({ "metadata": { "namespace": NAMESPACE, "name": "web" }, "spec": spec })
}

/// So many replicas of a pod.
fn replicas(count: u32) -> Value {
    json!({
        "replicas": count,
        "selector": { "matchLabels": { "app": "web" } },
        "template": {
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
        },
    })
}

fn active_pods(sandbox: &Sandbox) -> Vec<Value> {
    let mut pods = sandbox.list(&PODS, Some(NAMESPACE));
    pods.retain(is_active);
    pods
}

fn ready_pods(sandbox: &Sandbox) -> usize {
    sandbox.list(&PODS, Some(NAMESPACE)).iter().filter(|pod| is_ready(pod)).count()
}
