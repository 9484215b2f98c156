//! Parts of the scenarios for the simulation.

use kcm_framework::ControllerDescriptor;
use kcm_simulation::rules::{
    deletions_carry_the_uid, metadata_of_users_is_kept, observed_generation_never_falls, statuses_change_nothing_else,
};
use kcm_simulation::{Invariant, Scenario};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{NAMESPACES, NODES};
use serde_json::json;

use crate::shared::tests::services_of_pods::NAMESPACE;

/// The rules of every loop.
const RULES: &[Invariant] = &[
    deletions_carry_the_uid,
    metadata_of_users_is_kept,
    observed_generation_never_falls,
    statuses_change_nothing_else,
];

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
    rules.iter().chain(RULES).fold(scenario, |scenario, rule| scenario.invariant(*rule))
}
