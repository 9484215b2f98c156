//! Shares of zones in the CPUs of the cluster.

use std::sync::Arc;

use kcm_framework::api::views::Node;
use kcm_framework::informers::Change;
use serde_json::json;

use super::super::zones::{Shares, ZoneCpus};
use super::node;

fn shares(nodes: &[Arc<Node>]) -> Option<Shares> {
    let mut cpus = ZoneCpus::default();
    for node in nodes {
        cpus.follow(&Change::Added(Arc::clone(node)));
    }
    cpus.shares()
}

#[test]
fn a_zone_has_the_share_of_its_ready_nodes() {
    let cpu = |cpu: &str| json!({ "status": { "allocatable": { "cpu": cpu } } });
    let labelled = |label: &str| json!({ "metadata": { "labels": { label: "" } } });
    let plain = json!({});
    let share = |a: f64, b: f64| Some(Shares::from([("a".to_owned(), a), ("b".to_owned(), b)]));
    let two = || vec![node("1", "a", &plain), node("2", "b", &plain)];
    let with = |node: Arc<Node>| [two(), vec![node]].concat();
    for (name, nodes, expected) in [
        ("no node", vec![], None),
        ("one zone", vec![node("1", "a", &plain), node("2", "a", &plain)], None),
        ("two zones", two(), share(0.5, 0.5)),
        ("by CPUs, not by nodes", vec![node("1", "a", &cpu("1500m")), node("2", "b", &cpu("500m"))], share(0.75, 0.25)),
        ("a node without a zone", with(node("3", "", &plain)), None),
        ("a node without a CPU", with(node("3", "a", &cpu("0"))), None),
        ("a node that is not ready", with(node("3", "c", &json!({ "status": { "conditions": [] } }))), share(0.5, 0.5)),
        ("a control plane", with(node("3", "", &labelled("node-role.kubernetes.io/control-plane"))), share(0.5, 0.5)),
        (
            "a control plane by its old label",
            with(node("3", "", &labelled("node-role.kubernetes.io/master"))),
            share(0.5, 0.5),
        ),
    ] {
        assert_eq!(shares(&nodes), expected, "{name}");
    }
}

#[test]
fn shares_follow_each_change_of_a_node() {
    let (plain, unready) = (json!({}), json!({ "status": { "conditions": [] } }));
    let (a, b, c) = (node("1", "a", &plain), node("2", "b", &plain), node("3", "c", &plain));
    let mut cpus = ZoneCpus::default();
    let mut follow = |change: Change<Node>| (cpus.follow(&change), cpus.shares().map(|shares| shares.len()));
    assert_eq!(follow(Change::Added(Arc::clone(&a))), (true, None));
    assert_eq!(follow(Change::Added(Arc::clone(&b))), (true, Some(2)));
    assert_eq!(follow(Change::Updated { old: Arc::clone(&b), new: Arc::clone(&b) }), (false, Some(2)));
    assert_eq!(follow(Change::Updated { old: Arc::clone(&b), new: node("2", "b", &unready) }), (true, None));
    assert_eq!(follow(Change::Updated { old: node("2", "b", &unready), new: b }), (true, Some(2)));
    assert_eq!(follow(Change::Added(Arc::clone(&c))), (true, Some(3)));
    assert_eq!(follow(Change::Deleted { last: c, final_state_known: true }), (true, Some(2)));
    assert_eq!(follow(Change::Deleted { last: a, final_state_known: false }), (true, None));
}

#[test]
fn a_node_that_is_shown_again_counts_once_and_a_node_whose_deletion_was_missed_counts_no_more() {
    let plain = json!({});
    let (a, b, c) = (node("1", "a", &plain), node("2", "b", &plain), node("3", "c", &plain));
    let mut cpus = ZoneCpus::default();
    let nodes = |nodes: &[&Arc<Node>]| nodes.iter().map(|node| Arc::clone(node)).collect::<Vec<_>>();
    let all = nodes(&[&a, &b, &c]);
    assert!(cpus.replace(all.iter().map(|node| &**node)));
    let before = cpus.shares();
    for node in &all {
        assert!(!cpus.follow(&Change::Added(Arc::clone(node))));
    }
    assert!(!cpus.replace(all.iter().map(|node| &**node)));
    assert_eq!(cpus.shares(), before);
    let left = nodes(&[&a, &b]);
    assert!(cpus.replace(left.iter().map(|node| &**node)));
    assert_eq!(cpus.shares(), shares(&left));
    assert!(!cpus.follow(&Change::Deleted { last: c, final_state_known: true }), "it does not count");
}

#[test]
fn a_node_that_cannot_be_decoded_keeps_its_cpus_until_it_is_deleted() {
    let mut cpus = ZoneCpus::default();
    let nodes = [node("1", "a", &json!({})), node("2", "b", &json!({}))];
    cpus.replace(nodes.iter().map(|node| &**node));
    let shares = cpus.shares();
    let last = || Arc::clone(&nodes[0]);
    assert!(!cpus.follow(&Change::Undecodable { last: last() }));
    assert_eq!(cpus.shares(), shares);
    assert!(cpus.follow(&Change::Deleted { last: last(), final_state_known: false }));
    assert_eq!(cpus.shares(), None, "one zone is left");
}
