//! The rules of pod CIDRs for every history.

use std::collections::BTreeSet;

use kcm_simulation::rules::{Held, Story, check, holds, holds_at_rest, of, text, uid, writes_of};
use kcm_simulation::{History, Invariant};
use kcm_testing::sandbox::NODES;
use serde_json::{Value, json};

const LOOP: &str = "cidrallocator_node";
/// The first three numbers of the blocks of the scenarios.
const BLOCKS: [&str; 4] = ["10.244.0.", "10.244.1.", "10.244.2.", "10.244.3."];

/// The rules, for scenarios.
pub(super) const RULES: &[Invariant] =
    &[gives_no_block_twice, changes_nothing_else, stays_inside_of_the_cluster, gives_all_blocks_at_rest];

fn cidr(node: &Value) -> &str {
    text(node, "/spec/podCIDR")
}

/// D23.1 and D23.3: a node gets a block that no other node has.
fn gives_no_block_twice(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let Some(given) = change.after.as_deref().filter(|node| !cidr(node).is_empty()) else { return Ok(()) };
        let mut others = of(objects, &NODES).filter(|node| uid(node) != uid(given) && cidr(node) == cidr(given));
        holds(others.next().is_none(), "D23.1", "a block is given to two nodes", at, change)
    })
}

/// D23.2: a node keeps its block, and only nodes are changed.
fn changes_nothing_else(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, _| {
        let had = change.before.as_deref().map_or("", cidr);
        let is_right = change.resource == NODES && had.is_empty();
        holds(is_right, "D23.2", "a node that has a block is changed", at, change)
    })
}

/// D23.4: a block is inside of the cluster's CIDR.
fn stays_inside_of_the_cluster(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, _| {
        let given = change.after.as_deref().map_or("", cidr);
        let is_inside = BLOCKS.iter().any(|block| given == format!("{block}0/24"));
        holds(is_inside, "D23.4", "a block is outside of the cluster", at, change)
    })
}

/// D23: at rest, a node has no block only if all blocks are given.
fn gives_all_blocks_at_rest(history: &History) -> Held {
    let end = history.end();
    let given: BTreeSet<&str> = of(&end, &NODES).map(cidr).filter(|cidr| !cidr.is_empty()).collect();
    for node in of(&end, &NODES).filter(|node| cidr(node).is_empty()) {
        holds_at_rest(given.len() == BLOCKS.len(), "D23", "a node has no block although one is free", node)?;
    }
    Ok(())
}

fn node(name: &str, block: &str) -> Value {
    json!({ "metadata": { "name": name, "uid": format!("u-{name}") }, "spec": { "podCIDR": block } })
}

fn given(of: &str, block: &str) -> Story {
    let begun = Story::of([(NODES, node("a", "10.244.0.0/24")), (NODES, node("b", ""))]);
    begun.edit(LOOP, &NODES, of, |node| node["spec"]["podCIDR"] = block.into())
}

#[test]
fn each_node_gets_a_block_of_its_own_and_keeps_it() {
    let accepted = || given("b", "10.244.1.0/24");
    check("D23.1", gives_no_block_twice, accepted(), given("b", "10.244.0.0/24"));
    check("D23.2", changes_nothing_else, accepted(), given("a", "10.244.2.0/24"));
    check("D23.4", stays_inside_of_the_cluster, accepted(), given("b", "10.244.4.0/24"));
    check("D23", gives_all_blocks_at_rest, accepted(), given("b", ""));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
