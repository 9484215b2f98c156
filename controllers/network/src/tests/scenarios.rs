//! Parts of the scenarios for the simulation.

use kcm_framework::ControllerDescriptor;
use kcm_simulation::rules::EVERY_LOOP;
use kcm_simulation::{Invariant, Scenario};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{NAMESPACES, NODES};
use serde_json::json;

use crate::shared::tests::services_of_pods::NAMESPACE;

/// A scenario with a controller in the namespace of the tests, under the rules of every loop and these.
pub(crate) fn scenario(
    name: &str,
    controller: ControllerDescriptor,
    arguments: &[&str],
    rules: &[Invariant],
) -> Scenario {
    let scenario = Scenario::new(name, &TestEnvironment::new([controller]).arguments(arguments))
        .object(&NAMESPACES, json!({ "metadata": { "name": NAMESPACE } }))
        .object(&NODES, json!({ "metadata": { "name": "node-a" } }));
    rules.iter().chain(EVERY_LOOP).fold(scenario, |scenario, rule| scenario.invariant(*rule))
}
