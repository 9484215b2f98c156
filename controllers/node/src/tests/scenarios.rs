//! Parts of the scenarios for the simulation.

use std::time::Duration;

use kcm_simulation::rules::{EVERY_LOOP, text};
use kcm_simulation::{History, Invariant, Scenario};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{NAMESPACES, NODES, PODS, Sandbox};
use serde_json::{Value, json};

use super::key;

/// The namespace of pods.
pub(crate) const NAMESPACE: &str = "shop";

/// A scenario in an environment, under the rules of every loop and these.
pub(crate) fn scenario(name: &str, environment: &TestEnvironment, rules: &[Invariant]) -> Scenario {
    let scenario = Scenario::new(name, environment).object(&NAMESPACES, json!({ "metadata": { "name": NAMESPACE } }));
    rules.iter().chain(EVERY_LOOP).fold(scenario, |scenario, rule| scenario.invariant(*rule))
}

/// Sets an annotation of all nodes.
pub(crate) fn annotate_nodes(sandbox: &Sandbox) {
    let of_user = json!({ "metadata": { "annotations": { "example.com/of": "user" } } });
    for node in sandbox.list(&NODES, None) {
        drop(sandbox.patch(&NODES, &key(text(&node, "/metadata/name")), &of_user));
    }
}

/// Sets an annotation of all pods.
pub(crate) fn annotate_pods(sandbox: &Sandbox) {
    let of_user = json!({ "metadata": { "annotations": { "example.com/of": "user" } } });
    for pod in sandbox.list(&PODS, None) {
        drop(sandbox.patch(&PODS, &kcm_simulation::rules::key_of(&pod), &of_user));
    }
}

/// The time of the last change before the change with that index that `is_wanted`, or the start.
pub(crate) fn last(history: &History, before: usize, is_wanted: impl Fn(&kcm_simulation::Change) -> bool) -> Duration {
    let found = history.changes[..before].iter().rev().find(|change| is_wanted(change));
    found.map_or(Duration::ZERO, |change| change.at)
}

/// The taints of a node.
pub(crate) fn taints(node: &Value) -> &[Value] {
    kcm_simulation::rules::items(node, "/spec/taints")
}
