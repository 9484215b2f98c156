//! Rolling updates without surge, by the cases of upstream's `update_test.go`.

use super::fixtures::{NEW, PodBuilder, World, created, daemon_pod, daemon_set, deleted, node};
use crate::daemonset::changes::DeleteReason;
use crate::daemonset::changes::DeleteReason::{OldUnavailable, Update};

struct Case {
    name: &'static str,
    max_unavailable: i32,
    pods: Vec<PodBuilder>,
    deleted: &'static [(&'static str, DeleteReason)],
}

/// Five nodes, `n1` to `n5`.
fn check(case: &Case) {
    let nodes = ["n1", "n2", "n3", "n4", "n5"].map(node);
    let changes = World::of(&daemon_set("agent").rolling(0, case.max_unavailable), &nodes, &case.pods).rolled();
    assert_eq!(deleted(&changes), case.deleted, "{}", case.name);
    assert_eq!(created(&changes), [], "{}", case.name);
}

fn ready(name: &str, node: &str, revision: &str) -> PodBuilder {
    daemon_pod(name, node, revision).ready(100)
}

fn old_but(others: Vec<PodBuilder>, nodes: &[&str]) -> Vec<PodBuilder> {
    nodes.iter().map(|node| ready(&format!("old-{node}"), node, "old")).chain(others).collect()
}

#[test]
fn old_pods_are_deleted_as_availability_allows() {
    for case in [
        Case {
            name: "all are old and available",
            max_unavailable: 2,
            pods: old_but(vec![], &["n1", "n2", "n3", "n4", "n5"]),
            deleted: &[("old-n1", Update), ("old-n2", Update)],
        },
        Case {
            name: "all are new",
            max_unavailable: 2,
            pods: ["n1", "n2", "n3", "n4", "n5"].iter().map(|node| daemon_pod(node, node, NEW)).collect(),
            deleted: &[],
        },
        Case {
            name: "a new pod is not available yet",
            max_unavailable: 2,
            pods: old_but(vec![daemon_pod("new", "n1", NEW)], &["n2", "n3", "n4", "n5"]),
            deleted: &[("old-n2", Update)],
        },
        Case {
            name: "a pod is being deleted",
            max_unavailable: 2,
            pods: old_but(vec![ready("going", "n1", "old").terminating()], &["n2", "n3", "n4", "n5"]),
            deleted: &[("old-n2", Update)],
        },
        Case {
            name: "a node has no pod yet",
            max_unavailable: 1,
            pods: old_but(vec![], &["n2", "n3", "n4", "n5"]),
            deleted: &[],
        },
        Case {
            name: "a node has pods of both templates",
            max_unavailable: 1,
            pods: old_but(vec![ready("new", "n1", NEW)], &["n1", "n2", "n3", "n4", "n5"]),
            deleted: &[],
        },
        Case {
            name: "a node has several old pods",
            max_unavailable: 1,
            pods: old_but(vec![ready("second", "n1", "older")], &["n1", "n2", "n3", "n4", "n5"]),
            deleted: &[],
        },
        Case {
            name: "unavailable old pods always go, and count: 3 − 2 = 1 of the others",
            max_unavailable: 3,
            pods: old_but(vec![daemon_pod("broken", "n1", "old"), daemon_pod("new", "n2", NEW)], &["n3", "n4", "n5"]),
            deleted: &[("broken", OldUnavailable), ("old-n3", Update)],
        },
        Case {
            name: "unavailable old pods go beyond the limit",
            max_unavailable: 1,
            pods: ["n1", "n2", "n3", "n4", "n5"].iter().map(|node| daemon_pod(node, node, "old")).collect(),
            deleted: &[
                ("n1", OldUnavailable),
                ("n2", OldUnavailable),
                ("n3", OldUnavailable),
                ("n4", OldUnavailable),
                ("n5", OldUnavailable),
            ],
        },
        Case {
            name: "healthy old pods stay while new ones are broken",
            max_unavailable: 2,
            pods: old_but(vec![daemon_pod("a", "n1", NEW), daemon_pod("b", "n2", NEW)], &["n3", "n4", "n5"]),
            deleted: &[],
        },
        Case {
            name: "more may be unavailable than there are",
            max_unavailable: 100,
            pods: old_but(vec![ready("new", "n1", NEW)], &["n2", "n3"]),
            deleted: &[("old-n2", Update), ("old-n3", Update)],
        },
    ] {
        check(&case);
    }
}

#[test]
fn min_ready_seconds_count_for_new_and_old_pods() {
    let set = daemon_set("agent").min_ready_seconds(101);
    let pods = [ready("a", "n1", "old"), daemon_pod("b", "n2", "old").ready(101)];
    let changes = World::of(&set, &[node("n1"), node("n2")], &pods).rolled();
    assert_eq!(deleted(&changes), [("a", OldUnavailable)]);
}

#[test]
fn on_delete_replaces_no_pod() {
    let pods = [daemon_pod("a", "n1", "old")];
    assert!(World::of(&daemon_set("agent").on_delete(), &[node("n1")], &pods).rolled().is_empty());
}

#[test]
fn pods_of_the_template_generation_are_new_whatever_their_hash() {
    let set = daemon_set("agent").annotations(serde_json::json!({ "deprecated.daemonset.template.generation": "3" }));
    let of = |generation: &str| {
        let labels = serde_json::json!({ "app": "agent", "pod-template-generation": generation });
        ready("a", "n1", "").labels(labels)
    };
    assert!(World::of(&set, &[node("n1")], &[of("3")]).rolled().is_empty());
    assert_eq!(deleted(&World::of(&set, &[node("n1")], &[of("2")]).rolled()), [("a", Update)]);
}

#[test]
fn a_percentage_is_of_all_nodes_and_a_terminating_pod_counts() {
    let set = daemon_set("agent").rolling(0, "50%");
    let nodes = ["n1", "n2", "n3", "n4"].map(node);
    let old = |node: &str| ready(&format!("old-{node}"), node, "old");
    for (name, pods, expected) in [
        ("none terminates", ["n1", "n2", "n3", "n4"].map(old), vec![("old-n1", Update), ("old-n2", Update)]),
        ("one terminates", [old("n1").terminating(), old("n2"), old("n3"), old("n4")], vec![("old-n2", Update)]),
        ("two terminate", [old("n1").terminating(), old("n2").terminating(), old("n3"), old("n4")], vec![]),
    ] {
        assert_eq!(deleted(&World::of(&set, &nodes, &pods).rolled()), expected, "{name}");
    }
}
