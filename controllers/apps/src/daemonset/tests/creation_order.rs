//! The order of creations after failures.

use std::collections::BTreeSet;

use crate::daemonset::changes::{CreateReason, Creation};
use crate::daemonset::creation_order::{FailedCreations, Failures};
use crate::daemonset::tests::fixtures::key;
use crate::shared::pod_control::SlowStart;

fn creation(node: &str) -> Creation {
    Creation { node: node.into(), reason: CreateReason::Missing }
}

fn creations(count: usize) -> Vec<Creation> {
    (0..count).map(|at| creation(&format!("node-{at:04}"))).collect()
}

fn order(failures: &Failures, mut creations: Vec<Creation>) -> Vec<Box<str>> {
    failures.arrange(&mut creations, |creation| &creation.node);
    creations.into_iter().map(|creation| creation.node).collect()
}

#[test]
fn nodes_whose_creation_failed_come_last_and_the_others_in_another_order_each_time() {
    let (set, mut failed) = (key("agent"), FailedCreations::default());
    assert!(order(&failed.of(&set), creations(10)).is_sorted(), "by name at first");
    let mut orders = BTreeSet::new();
    for _ in 0..20 {
        failed.record(&set, &["node-0000", "node-0003"]);
        let order = order(&failed.of(&set), creations(10));
        let last: BTreeSet<_> = order[8..].iter().map(|node| &**node).collect();
        assert_eq!(last, BTreeSet::from(["node-0000", "node-0003"]));
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 10, "all are there");
        orders.insert(order);
    }
    assert!(orders.len() >= 19, "{} of 20 orders differ", orders.len());
}

#[test]
fn failures_are_forgotten_after_a_reconcile_without_any() {
    let mut failed = FailedCreations::default();
    for set in ["a", "b"] {
        failed.record(&key(set), &["node-0000"]);
    }
    failed.record(&key("a"), &[]);
    failed.forget(&key("b"));
    assert_eq!(
        [failed.of(&key("a")), failed.of(&key("b"))].map(|failures| *failures == Failures::default()),
        [true; 2]
    );
}

/// Number of reconciles until all nodes but the first `denied` have their pods.
fn reconciles(count: usize, denied: usize) -> usize {
    let (set, mut failures) = (key("agent"), FailedCreations::default());
    let mut left: BTreeSet<Box<str>> = creations(count).into_iter().map(|creation| creation.node).collect();
    let never: BTreeSet<Box<str>> = left.iter().take(denied).cloned().collect();
    for reconcile in 1.. {
        let mut all: Vec<_> = left.iter().map(|node| creation(node)).collect();
        failures.of(&set).arrange(&mut all, |creation| &creation.node);
        let (mut batches, mut nodes) = (SlowStart::of(all.len()), all.iter());
        let mut failed = Vec::new();
        while let Some(size) = batches.next_batch() {
            for creation in nodes.by_ref().take(size) {
                if never.contains(&creation.node) {
                    batches.stop();
                    failed.push(&*creation.node);
                } else {
                    left.remove(&creation.node);
                }
            }
        }
        failures.record(&set, &failed);
        if left == never {
            return reconcile;
        }
    }
    unreachable!("it ends")
}

#[test]
fn nodes_whose_pods_are_denied_keep_no_other_node_waiting() {
    for (count, denied, most) in [(10, 1, 2), (10, 3, 4), (100, 1, 2), (1000, 10, 10), (100, 50, 45)] {
        let reconciles = reconciles(count, denied);
        assert!(reconciles <= most, "{count} nodes, {denied} denied: {reconciles} reconciles");
    }
}
