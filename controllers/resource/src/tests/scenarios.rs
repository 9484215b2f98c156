//! Parts of the scenarios for the simulation.

use kcm_framework::ControllerDescriptor;
use kcm_framework::api::{ObjectKey, Resource};
use kcm_simulation::rules::EVERY_LOOP;
use kcm_simulation::{Invariant, Scenario};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{NAMESPACES, Sandbox};
use serde_json::json;

/// A scenario with a controller and the namespace of the tests, under the rules of every loop and these.
pub(crate) fn scenario(name: &str, controller: ControllerDescriptor, rules: &[Invariant]) -> Scenario {
    let scenario = Scenario::new(name, &TestEnvironment::new([controller]))
        .object(&NAMESPACES, json!({ "metadata": { "name": "shop" } }));
    rules.iter().chain(EVERY_LOOP).fold(scenario, |scenario, rule| scenario.invariant(*rule))
}

/// Sets an annotation of an object, if it exists.
pub(crate) fn annotate(resource: &Resource, key: ObjectKey) -> impl Fn(&Sandbox) + Send + Sync + 'static + use<> {
    let resource = resource.clone();
    let of_user = json!({ "metadata": { "annotations": { "example.com/of": "user" } } });
    move |sandbox| drop(sandbox.patch(&resource, &key, &of_user))
}
