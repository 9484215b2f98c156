//! Which pods a round deletes.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::api::InternedStr;
use kcm_framework::api::views::Pod;
use serde_json::{Value, json};

use super::{disruptions, node, view_of};
use crate::pod_garbage_collector::plan::{
    Observed, Removal, may_be_deleted, missing_nodes, plan_by_cache, plan_by_live_nodes,
};
use crate::tests::fixtures::{PodBuilder, build, pod};

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

struct Case {
    name: &'static str,
    pods: Vec<PodBuilder>,
    nodes: Vec<Value>,
    /// Nodes that do not exist, by a live read.
    gone: &'static [&'static str],
    threshold: i32,
    /// Reason and name, in order.
    removals: &'static [&'static str],
}

impl Case {
    fn new(name: &'static str, pods: Vec<PodBuilder>, removals: &'static [&'static str]) -> Self {
        Self { name, pods, nodes: vec![node("node", true, &[])], gone: &[], threshold: 12500, removals }
    }

    fn threshold(self, threshold: i32) -> Self {
        Self { threshold, ..self }
    }

    fn nodes(self, nodes: Vec<Value>) -> Self {
        Self { nodes, ..self }
    }

    fn gone(self, gone: &'static [&'static str]) -> Self {
        Self { gone, ..self }
    }
}

/// The deletions of a whole round.
fn plan(observed: &Observed, gone: &BTreeSet<InternedStr>, threshold: i32) -> Vec<Removal> {
    let mut removals = plan_by_cache(observed, threshold, disruptions());
    removals.extend(plan_by_live_nodes(observed, gone, &removals, disruptions()));
    removals
}

fn check(Case { name, pods, nodes, gone, threshold, removals }: Case) {
    let nodes = nodes.iter().map(view_of).collect();
    let observed = Observed { pods: build(&pods), nodes, undecodable: BTreeSet::new() };
    let gone: BTreeSet<InternedStr> = gone.iter().map(|node| InternedStr::from(*node)).collect();
    let missing = missing_nodes(&observed);
    let planned = plan(&observed, &gone, threshold);
    // The round sees only the pods that it may delete, and plans the same.
    let is_known = |name: &str| observed.nodes.iter().any(|node| node.metadata.key.name() == name);
    let is_taken = |pod: &&Arc<Pod>| may_be_deleted(pod, |node| is_known(node) && !gone.contains(node));
    let pods: Vec<Arc<Pod>> = observed.pods.iter().filter(is_taken).cloned().collect();
    let taken = Observed { pods, ..observed };
    assert_eq!(plan(&taken, &gone, threshold), planned, "{name}");
    assert_eq!(missing_nodes(&taken), missing, "{name}");
    let planned: Vec<String> = planned
        .iter()
        .map(|removal| format!("{} {}", removal.reason.as_str(), removal.pod.metadata.key.name()))
        .collect();
    assert_eq!(planned, removals, "{name}");
}

/// A pod on a node that is there.
fn on_node(name: &str) -> PodBuilder {
    pod(name).node("node")
}

fn ended(name: &str, phase: &str, age: i64) -> PodBuilder {
    on_node(name).phase(phase).created(age)
}

fn evicted(name: &str, age: i64) -> PodBuilder {
    ended(name, "Failed", age).with("/status", "reason", json!("Evicted"))
}

fn finalized(name: &str, age: i64) -> PodBuilder {
    ended(name, "Failed", age).with("/metadata", "finalizers", json!(["example.com/hold"]))
}

#[test]
fn terminated_pods_beyond_the_threshold_are_deleted_evicted_ones_first_and_then_the_oldest() {
    let three = || vec![ended("b", "Failed", 20), ended("a", "Succeeded", 10), ended("c", "Failed", 30)];
    let alive = || vec![on_node("a").phase("Pending"), on_node("b").phase("Running"), on_node("c").phase("Unknown")];
    for case in [
        Case::new("as many as the threshold", three(), &[]).threshold(3),
        Case::new("one too many: the oldest", three(), &["terminated c"]).threshold(2),
        Case::new("two too many: the oldest first", three(), &["terminated c", "terminated b"]).threshold(1),
        Case::new("zero is no bound", three(), &[]).threshold(0),
        Case::new("nor is a negative number", three(), &[]).threshold(-1),
        Case::new("those that run do not count", alive(), &[]).threshold(1),
        Case::new(
            "of one age the name decides",
            vec![ended("b", "Failed", 5), ended("a", "Failed", 5), ended("c", "Failed", 5)],
            &["terminated a", "terminated b"],
        )
        .threshold(1),
        Case::new(
            "evicted ones go before older ones",
            vec![ended("a", "Failed", 90), evicted("b", 10), evicted("c", 20), ended("d", "Succeeded", 80)],
            &["terminated c", "terminated b", "terminated a"],
        )
        .threshold(1),
        Case::new(
            "one that succeeded was not evicted",
            vec![ended("a", "Succeeded", 10).with("/status", "reason", json!("Evicted")), ended("b", "Failed", 20)],
            &["terminated b"],
        )
        .threshold(1),
        Case::new(
            "without a creation time: the oldest of all",
            vec![ended("a", "Failed", 90), ended("b", "Failed", 1).created_unknown()],
            &["terminated b"],
        )
        .threshold(1),
        Case::new(
            "those that wait for a finalizer count, and are deleted again",
            vec![
                finalized("a", 90).terminating(),
                finalized("b", 80).terminating(),
                ended("c", "Failed", 70),
                ended("d", "Failed", 60),
            ],
            &["terminated a", "terminated b", "terminated c"],
        )
        .threshold(1),
        Case::new(
            "one with a finalizer is deleted",
            vec![finalized("a", 90), ended("b", "Failed", 9)],
            &["terminated a"],
        )
        .threshold(1),
        Case::new(
            "one that is terminating without a finalizer is deleted now",
            vec![ended("a", "Failed", 90).terminating(), ended("b", "Failed", 9)],
            &["terminated a"],
        )
        .threshold(1),
        Case::new(
            "a phase that is not known counts as terminated",
            vec![ended("a", "Novel", 20), ended("b", "Failed", 10)],
            &["terminated a"],
        )
        .threshold(1),
    ] {
        check(case);
    }
}

#[test]
fn terminating_pods_of_a_node_that_is_not_ready_and_out_of_service_are_deleted() {
    let pods = || vec![on_node("a").terminating(), on_node("b"), on_node("c").terminating().phase("Failed")];
    for case in [
        Case::new("not ready and tainted", pods(), &["out-of-service a", "out-of-service c"]).nodes(vec![node(
            "node",
            false,
            &["other", OUT_OF_SERVICE],
        )]),
        Case::new("ready again", pods(), &[]).nodes(vec![node("node", true, &[OUT_OF_SERVICE])]),
        Case::new("not tainted", pods(), &[]).nodes(vec![node("node", false, &["node.kubernetes.io/unreachable"])]),
        Case::new("missing in the cache", pods(), &[]).nodes(vec![]),
        Case::new("another node", pods(), &[])
            .nodes(vec![node("node", true, &[]), node("other", false, &[OUT_OF_SERVICE])]),
    ] {
        check(case);
    }
}

#[test]
fn pods_of_nodes_that_do_not_exist_are_deleted_whatever_they_do() {
    let pods = || {
        vec![
            pod("a").node("gone"),
            pod("b").node("gone").terminating(),
            pod("c").node("gone").phase("Succeeded"),
            on_node("d"),
            pod("e").unassigned(),
        ]
    };
    for case in [
        Case::new("gone", pods(), &["orphaned a", "orphaned b", "orphaned c"]).gone(&["gone"]),
        Case::new("missing in the cache alone", pods(), &[]),
        Case::new("another is gone", pods(), &[]).gone(&["other"]),
    ] {
        check(case);
    }
}

#[test]
fn terminating_pods_without_a_node_are_deleted() {
    let pods = vec![
        pod("a").unassigned().terminating(),
        pod("b").unassigned(),
        on_node("c").terminating(),
        pod("d").node("").terminating(),
    ];
    check(Case::new("terminating and never assigned", pods, &["unscheduled a", "unscheduled d"]));
}

#[test]
fn a_pod_is_deleted_once_in_a_round() {
    let pods = vec![
        pod("a").node("gone").phase("Failed").created(30),
        pod("b").node("gone").phase("Failed").created(20),
        pod("c").unassigned().terminating().phase("Failed").created(40),
        pod("d").unassigned().terminating().phase("Failed").created(10),
    ];
    let removals = &["terminated c", "terminated a", "orphaned b", "unscheduled d"];
    check(Case::new("terminated before all other reasons", pods, removals).threshold(2).gone(&["gone"]));
}

#[test]
fn nodes_that_pods_name_and_that_are_not_in_the_cache_are_missing() {
    let pods = [
        pod("a").node("gone"),
        pod("b").node("gone"),
        on_node("c"),
        pod("d").unassigned(),
        pod("e").node("also"),
        pod("f").node("odd"),
    ];
    let nodes = vec![view_of(&node("node", false, &[]))];
    let undecodable = BTreeSet::from([InternedStr::from("odd")]);
    let observed = Observed { pods: build(&pods), nodes, undecodable };
    let missing = missing_nodes(&observed);
    assert_eq!(missing.iter().map(|node| &**node).collect::<Vec<_>>(), ["also", "gone"]);
}
