//! Pod CIDRs in the simulation.

use kcm_simulation::{Scenario, check};
use kcm_testing::sandbox::{NODES, Sandbox};
use serde_json::json;

use super::apply::four;
use super::invariants::RULES;
use crate::tests::key;
use crate::tests::scenarios::{annotate_nodes, scenario};

/// Five nodes for four blocks, of which one is deleted.
fn exhausted() -> Scenario {
    scenario("node_ipam exhausted", &four(), RULES)
        .prepare(|sandbox| ["a", "b"].iter().for_each(|name| create(sandbox, name)))
        .then(is_settled, |sandbox| ["c", "d", "e"].iter().for_each(|name| create(sandbox, name)))
        .then(is_settled, |sandbox| drop(sandbox.delete(&NODES, &key("a"))))
        .act("annotate", annotate_nodes)
        .act("delete", |sandbox| drop(sandbox.delete(&NODES, &key("b"))))
        .act("recreate", |sandbox| {
            drop(sandbox.delete(&NODES, &key("b")));
            create(sandbox, "b");
        })
        .act("create", |sandbox| create(sandbox, "f"))
        .goal(is_settled)
}

fn create(sandbox: &Sandbox, name: &str) {
    drop(sandbox.create(&NODES, json!({ "metadata": { "name": name } })));
}

fn is_settled(sandbox: &Sandbox) -> bool {
    given(sandbox) == sandbox.list(&NODES, None).len().min(4)
}

fn given(sandbox: &Sandbox) -> usize {
    sandbox.list(&NODES, None).iter().filter(|node| node["spec"]["podCIDR"].is_string()).count()
}

#[test]
fn no_perturbation_of_exhausted_blocks_breaks_a_rule() {
    check(&exhausted(), 20);
}
