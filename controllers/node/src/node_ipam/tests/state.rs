//! Plans with the state of all Nodes.

use kcm_framework::api::Uid;

use super::cidr;
use crate::node_ipam::allocator::Allocator;
use crate::node_ipam::configuration::Clusters;
use crate::node_ipam::state::{Observed, Plan, State, Wrong};
use crate::tests::key;

/// The state of a cluster with two blocks.
fn state() -> State {
    State::new(Allocator::new(&Clusters { pods: vec![(cidr("10.244.0.0/23"), 24)], services: Vec::new() }))
}

/// Plans for a Node, and returns the plan in words.
fn plan(state: &mut State, name: &str, uid: &str, cidrs: &[&str], is_terminating: bool) -> Plan {
    let pod_cidrs: Vec<Box<str>> = cidrs.iter().map(|text| (*text).into()).collect();
    let node = Observed { key: &key(name), uid: &Uid::from(uid), is_terminating, pod_cidrs: &pod_cidrs };
    state.plan(node, false)
}

fn assigned(plan: &Plan) -> Option<String> {
    match plan {
        Plan::Assign(reservation) => Some(reservation.cidrs[0].to_string()),
        Plan::Occupied | Plan::Wrong(_) | Plan::Terminating | Plan::UnknownNodes | Plan::Wait { .. } => None,
    }
}

#[test]
fn s11_nodes_with_pod_cidrs_occupy_them_and_others_get_some() {
    let mut state = state();
    assert_eq!(plan(&mut state, "a", "1", &["10.244.0.0/24"], false), Plan::Occupied);
    assert_eq!(plan(&mut state, "b", "2", &[], true), Plan::Terminating);
    assert_eq!(assigned(&plan(&mut state, "c", "3", &[], false)).as_deref(), Some("10.244.1.0/24"));
    assert_eq!(plan(&mut state, "d", "4", &[], false), Plan::Wait { index: 0, is_known: false });
    assert_eq!(plan(&mut state, "d", "4", &[], false), Plan::Wait { index: 0, is_known: true });
}

#[test]
fn b4_a_deleted_node_gives_its_block_to_the_node_that_waits() {
    let mut state = state();
    plan(&mut state, "a", "1", &["10.244.0.0/24"], false);
    plan(&mut state, "b", "2", &["10.244.1.0/24"], false);
    plan(&mut state, "c", "3", &[], false);
    assert_eq!(state.waiting().iter().collect::<Vec<_>>(), [&key("c")]);
    state.forget(&key("b"));
    assert_eq!(assigned(&plan(&mut state, "c", "3", &[], false)).as_deref(), Some("10.244.1.0/24"));
    assert!(state.waiting().is_empty());
}

#[test]
fn t5_a_node_that_is_recreated_releases_what_its_predecessor_held() {
    let mut state = state();
    plan(&mut state, "a", "1", &["10.244.0.0/24"], false);
    assert_eq!(plan(&mut state, "a", "2", &["10.244.1.0/24"], false), Plan::Occupied);
    assert_eq!(assigned(&plan(&mut state, "b", "3", &[], false)).as_deref(), Some("10.244.0.0/24"));
}

#[test]
fn a_terminating_node_keeps_its_pod_cidrs() {
    let mut state = state();
    plan(&mut state, "a", "1", &["10.244.0.0/24"], true);
    assert_eq!(assigned(&plan(&mut state, "b", "2", &[], false)).as_deref(), Some("10.244.1.0/24"));
    assert_eq!(plan(&mut state, "c", "3", &[], false), Plan::Wait { index: 0, is_known: false });
}

#[test]
fn wrong_pod_cidrs_are_named() {
    for (name, cidrs, wrong) in [
        ("unreadable", vec!["10.244.0"], Wrong::Unreadable),
        ("unreadable beside a good one", vec!["10.244.0.0/24", "x"], Wrong::Unreadable),
        ("foreign", vec!["192.168.0.0/24"], Wrong::Foreign),
        ("shared", vec!["10.244.1.0/24"], Wrong::Shared),
    ] {
        let mut state = state();
        plan(&mut state, "b", "2", &["10.244.1.0/24"], false);
        assert_eq!(plan(&mut state, "a", "1", &cidrs, false), Plan::Wrong(wrong), "{name}");
    }
}

#[test]
fn nothing_is_given_while_a_node_is_unknown() {
    let mut state = state();
    let (key, uid) = (key("a"), Uid::from("1"));
    let node = Observed { key: &key, uid: &uid, is_terminating: false, pod_cidrs: &[] };
    assert_eq!(state.plan(node, true), Plan::UnknownNodes);
    assert!(assigned(&state.plan(node, false)).is_some());
}

#[test]
fn a_plan_in_words_has_its_reason() {
    let mut state = state();
    assert_eq!(plan(&mut state, "a", "1", &[], false).explain(), "gives the node 10.244.0.0/24");
    for (plan, words) in [
        (Plan::Occupied, "the node has its pod CIDRs"),
        (Plan::Wrong(Wrong::Unreadable), "the node has a pod CIDR that cannot be read"),
        (Plan::Terminating, "gives the node no pod CIDR, as it is being deleted"),
        (Plan::UnknownNodes, "waits, as another node cannot be decoded and may have any pod CIDR"),
        (Plan::Wait { index: 1, is_known: true }, "waits, as CIDR 1 of --cluster-cidr has no free block"),
    ] {
        assert_eq!(plan.explain(), words);
    }
}
