//! Parts of the scenarios for the simulation.

use kcm_framework::ControllerDescriptor;
use kcm_framework::api::Resource;
use kcm_simulation::{Invariant, Scenario};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{NAMESPACES, PODS, Sandbox};
use serde_json::{Value, json};

use super::cluster::{NAMESPACE, key};
use super::invariants::every_loop;

/// A scenario with these controllers in the namespace of the tests, under the rules of every loop and these. Pods may fail.
pub(crate) fn scenario<const N: usize>(
    name: &str,
    controllers: [ControllerDescriptor; N],
    rules: &[&[Invariant]],
) -> Scenario {
    let scenario = Scenario::new(name, &TestEnvironment::new(controllers))
        .pods_fail()
        .object(&NAMESPACES, json!({ "metadata": { "name": NAMESPACE } }));
    let rules = rules.iter().copied().chain([every_loop::RULES]).flatten();
    rules.fold(scenario, |scenario, rule| scenario.invariant(*rule))
}

/// The settings of these controllers with one worker for each kind, for a process that restarts with other settings.
pub(crate) fn one_worker<const N: usize>(controllers: [ControllerDescriptor; N], kinds: [&str; N]) -> TestEnvironment {
    let flags = kinds.map(|kind| format!("--concurrent-{kind}-syncs=1"));
    TestEnvironment::new(controllers).arguments(&flags.each_ref().map(String::as_str))
}

/// An object `web` in the namespace of the tests.
pub(crate) fn web(spec: Value) -> Value {
    let mut object = json!({ "metadata": { "namespace": NAMESPACE, "name": "web" } });
    object["spec"] = spec;
    object
}

/// A pod template with an image of that number.
pub(crate) fn template(image: u32) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": format!("example/main:{image}") }] },
    })
}

/// The object `web` of a resource.
pub(crate) fn get(sandbox: &Sandbox, resource: &Resource) -> Value {
    sandbox.get(resource, &key("web")).unwrap_or_default()
}

/// Returns `true` if a status field of the object `web` is `count`, and the status is of the current generation.
pub(crate) fn has_status(sandbox: &Sandbox, resource: &Resource, field: &str, count: i64) -> bool {
    let object = get(sandbox, resource);
    object["status"][field] == count && object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

/// Merges a patch into the object `web`, if it exists.
pub(crate) fn merge(resource: &Resource, merge_patch: Value) -> impl Fn(&Sandbox) + Send + Sync + 'static + use<> {
    let resource = resource.clone();
    move |sandbox| drop(sandbox.patch(&resource, &key("web"), &merge_patch))
}

/// Sets an annotation of the object `web`.
pub(crate) fn annotate(resource: &Resource) -> impl Fn(&Sandbox) + Send + Sync + 'static + use<> {
    merge(resource, json!({ "metadata": { "annotations": { "example.com/of": "user" } } }))
}

/// Deletes the oldest pod that is not terminating.
pub(crate) fn delete_a_pod(sandbox: &Sandbox) {
    if let Some(name) = active_pods(sandbox).first().and_then(|pod| pod["metadata"]["name"].as_str()) {
        drop(sandbox.delete(&PODS, &key(name)));
    }
}

/// The pods that have not ended and are not terminating, the oldest first.
pub(crate) fn active_pods(sandbox: &Sandbox) -> Vec<Value> {
    let mut pods = sandbox.list(&PODS, Some(NAMESPACE));
    let has_ended = |pod: &Value| pod["status"]["phase"] == "Succeeded" || pod["status"]["phase"] == "Failed";
    pods.retain(|pod| !pod["metadata"]["deletionTimestamp"].is_string() && !has_ended(pod));
    let version = |pod: &Value| pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    pods.sort_by_key(version);
    pods
}
