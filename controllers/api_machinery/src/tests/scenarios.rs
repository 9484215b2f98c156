//! Parts of the scenarios for the simulation.

use kcm_framework::ControllerDescriptor;
use kcm_framework::api::{ObjectKey, Resource};
use kcm_simulation::rules::{metadata_of_users_is_kept, observed_generation_never_falls, statuses_change_nothing_else};
use kcm_simulation::{Invariant, Scenario};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{NAMESPACES, PODS, Sandbox};
use serde_json::{Value, json};

/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "shop";

/// The rules of every loop. Deletions of collections carry no uid.
const RULES: &[Invariant] = &[metadata_of_users_is_kept, observed_generation_never_falls, statuses_change_nothing_else];

/// A scenario with a controller in the namespace of the tests, under the rules of every loop and these.
pub(crate) fn scenario(name: &str, controller: ControllerDescriptor, rules: &[Invariant]) -> Scenario {
    let scenario = Scenario::new(name, &TestEnvironment::new([controller]))
        .object(&NAMESPACES, json!({ "metadata": { "name": NAMESPACE } }));
    rules.iter().chain(RULES).fold(scenario, |scenario, rule| scenario.invariant(*rule))
}

/// An object of that name in the namespace. A pod has a container.
pub(crate) fn object(resource: &Resource, name: &str) -> Value {
    let mut object = json!({ "metadata": { "namespace": NAMESPACE, "name": name } });
    if *resource == PODS {
        let resources = json!({ "requests": { "cpu": "500m" } });
        object["spec"] = json!({ "containers": [{ "name": "main", "image": "image", "resources": resources }] });
    }
    object
}

/// Creates an object, if the API server accepts it.
pub(crate) fn create(sandbox: &Sandbox, resource: &Resource, name: &str) {
    drop(sandbox.create(resource, object(resource, name)));
}

/// The key of an object in the namespace.
pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(NAMESPACE, name)
}
