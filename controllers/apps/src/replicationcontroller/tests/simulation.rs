//! `ReplicationControllers` in the simulation.

use kcm_simulation::{Scenario, check};
use kcm_testing::sandbox::{PODS, Sandbox};
use serde_json::json;

use super::invariants::RULES;
use super::{CONTROLLERS, web};
use crate::replicationcontroller::DESCRIPTOR;
use crate::tests::cluster::key;
use crate::tests::scenarios::{active_pods, annotate, delete_a_pod, get, has_status, merge, scenario};

/// Two replicas, which become one.
fn scaled_down() -> Scenario {
    scenario("replicationcontroller scaled down", [DESCRIPTOR], &[RULES])
        .object(&CONTROLLERS, web(2))
        .then(|sandbox| has_ready(sandbox, 2), merge(&CONTROLLERS, json!({ "spec": { "replicas": 1 } })))
        .act("annotate", annotate(&CONTROLLERS))
        .act("delete-pod", delete_a_pod)
        .act("relabel-pod", |sandbox| {
            if let Some(name) = active_pods(sandbox).first().and_then(|pod| pod["metadata"]["name"].as_str()) {
                drop(sandbox.patch(&PODS, &key(name), &json!({ "metadata": { "labels": { "app": "other" } } })));
            }
        })
        .goal(|sandbox| has_ready(sandbox, 1) && owned(sandbox) == 1)
}

/// Number of pods of the controller that are not terminating.
fn owned(sandbox: &Sandbox) -> usize {
    let own = get(sandbox, &CONTROLLERS)["metadata"]["uid"].clone();
    active_pods(sandbox).iter().filter(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == own).count()
}

fn has_ready(sandbox: &Sandbox, count: i64) -> bool {
    has_status(sandbox, &CONTROLLERS, "readyReplicas", count)
}

#[test]
fn no_perturbation_of_a_scale_down_breaks_a_rule() {
    check(&scaled_down(), 20);
}
