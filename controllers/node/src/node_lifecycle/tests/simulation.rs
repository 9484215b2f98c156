//! Silent nodes in the simulation.

use std::time::Duration;

use kcm_simulation::rules::{items, text};
use kcm_simulation::{Scenario, check};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{NODES, PODS, Sandbox};
use serde_json::json;

use super::apply::{create, create_pod_with, renew};
use super::invariants::RULES;
use crate::node_lifecycle::DESCRIPTOR;
use crate::tests::key;
use crate::tests::scenarios::{annotate_nodes, scenario};

/// Two of three nodes fall silent; a pod runs on each.
fn silent() -> Scenario {
    scenario("node_lifecycle silent", &TestEnvironment::new([DESCRIPTOR]), RULES)
        .prepare(|sandbox| {
            for node in ["live", "lost", "dead"] {
                create(sandbox, node, "a");
                create_pod_with(sandbox, node, node, &json!([]));
            }
        })
        .every(Duration::from_secs(10), |sandbox| {
            if sandbox.get(&NODES, &key("live")).is_some() {
                renew(sandbox, "live");
            }
        })
        .act("annotate", annotate_nodes)
        .act("taint", |sandbox| {
            let node = sandbox.get(&NODES, &key("dead")).unwrap_or_default();
            let mut taints = items(&node, "/spec/taints").to_vec();
            taints.push(json!({ "key": "example.com/of", "effect": "NoSchedule" }));
            drop(sandbox.patch(&NODES, &key("dead"), &json!({ "spec": { "taints": taints } })));
        })
        .act("renew", |sandbox| renew(sandbox, "dead"))
        .act("recreate", |sandbox| {
            drop(sandbox.delete_now(&NODES, &key("lost")));
            drop(sandbox.delete_now(&kcm_testing::sandbox::LEASES, &super::apply::lease_key("lost")));
            create(sandbox, "lost", "a");
        })
        .goal(|sandbox| {
            let pods_agree = sandbox.list(&PODS, None).iter().all(|pod| {
                let is_live = text(pod, "/spec/nodeName") == "live";
                (condition(pod, "Ready") == "True") == is_live
            });
            let lost = ["lost", "dead"].iter().all(|node| readiness(sandbox, node) == "Unknown");
            let evict = |node: &str| {
                let node = sandbox.get(&NODES, &key(node)).unwrap_or_default();
                items(&node, "/spec/taints").iter().any(|taint| taint["effect"] == "NoExecute")
            };
            lost && readiness(sandbox, "live") == "True" && pods_agree && evict("lost") && evict("dead")
        })
}

fn readiness(sandbox: &Sandbox, node: &str) -> String {
    condition(&sandbox.get(&NODES, &key(node)).unwrap_or_default(), "Ready").to_owned()
}

fn condition<'a>(object: &'a serde_json::Value, type_: &str) -> &'a str {
    let mut conditions = items(object, "/status/conditions").iter();
    conditions.find(|one| one["type"] == type_).map_or("", |one| text(one, "/status"))
}

#[test]
fn no_perturbation_of_silent_nodes_breaks_a_rule() {
    check(&silent(), 5);
}
