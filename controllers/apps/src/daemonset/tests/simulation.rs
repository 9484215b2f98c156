//! DaemonSets in the simulation.

use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::{DaemonSet, Node};
use kcm_simulation::{Plant, Planted, Scenario, check, check_planted};
use kcm_testing::sandbox::Sandbox;
use serde_json::{Value, json};

use super::invariants::RULES;
use crate::daemonset::DESCRIPTOR;
use crate::tests::scenarios::{
    active_pods, annotate, delete_a_pod, get, has_status, merge, one_worker, scenario, template, web,
};

fn node(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}

/// A pod on each of two nodes, whose image changes.
fn rolling() -> Scenario {
    let sets = DaemonSet::RESOURCE;
    scenario("daemonset rolling", [DESCRIPTOR], &[RULES])
        .other_settings(&one_worker([DESCRIPTOR], ["daemonset"]))
        .object(&Node::RESOURCE, node("node-1"))
        .object(&Node::RESOURCE, node("node-2"))
        .object(&sets, web(json!({ "selector": { "matchLabels": { "app": "web" } }, "template": template(1) })))
        .then(is_rolled_out, merge(&sets, json!({ "spec": { "template": template(2) } })))
        .act("annotate", annotate(&sets))
        .act("add-node", |sandbox| drop(sandbox.create(&Node::RESOURCE, node("node-3"))))
        .act("third-image", merge(&sets, json!({ "spec": { "template": template(3) } })))
        .act("delete-pod", delete_a_pod)
        .goal(is_rolled_out)
}

fn is_rolled_out(sandbox: &Sandbox) -> bool {
    let nodes = sandbox.list(&Node::RESOURCE, None).len();
    let fields = ["desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable"];
    let count = i64::try_from(nodes).unwrap_or_default();
    fields.iter().all(|field| has_status(sandbox, &DaemonSet::RESOURCE, field, count))
        && active_pods(sandbox).len() == nodes
        && get(sandbox, &DaemonSet::RESOURCE)["status"]["numberMisscheduled"] == 0
}

#[test]
fn no_perturbation_of_a_rolling_update_breaks_a_rule() {
    check(&rolling(), 20);
}

#[test]
fn planted_bugs_are_found_in_rolling() {
    check_planted(
        rolling,
        &[
            Planted {
                plant: Plant::StatusWithoutVersion,
                rule: "D1.11",
                run: 35,
                schedule: "daemonset shop/web write 19: act annotate",
            },
            Planted {
                plant: Plant::ConflictIsSuccess,
                rule: "O2",
                run: 119,
                schedule: "daemonset shop/web write 7: fail before 409",
            },
            Planted {
                plant: Plant::FailureIsSuccess,
                rule: "D5.1",
                run: 258,
                schedule: "daemonset shop/web write 16: fail after 504",
            },
            Planted { plant: Plant::OwnWritesAreForgotten, rule: "D5.1", run: 1, schedule: "" },
        ],
    );
}
