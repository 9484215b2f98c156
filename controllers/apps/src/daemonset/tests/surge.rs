//! Rolling updates with surge, by the cases of upstream's `update_test.go`.

use super::fixtures::{NEW, NodeBuilder, PodBuilder, World, created, daemon_pod, daemon_set, deleted, node};
use crate::daemonset::changes::CreateReason::{self, OldUnavailable, Surge};
use crate::daemonset::changes::DeleteReason;

struct Case {
    name: &'static str,
    max_surge: i32,
    nodes: Vec<NodeBuilder>,
    pods: Vec<PodBuilder>,
    created: &'static [(&'static str, CreateReason)],
    deleted: &'static [(&'static str, DeleteReason)],
}

fn check(case: &Case) {
    let changes = World::of(&daemon_set("agent").rolling(case.max_surge, 0), &case.nodes, &case.pods).rolled();
    assert_eq!(created(&changes), case.created, "{}", case.name);
    assert_eq!(deleted(&changes), case.deleted, "{}", case.name);
}

fn ready(name: &str, node: &str, revision: &str) -> PodBuilder {
    daemon_pod(name, node, revision).ready(100)
}

fn three() -> Vec<NodeBuilder> {
    vec![node("n1"), node("n2"), node("n3")]
}

#[test]
fn new_pods_are_created_beside_old_ones_which_go_when_the_new_ones_are_available() {
    let old = |nodes: &[&str]| nodes.iter().map(|node| ready(node, node, "old")).collect::<Vec<_>>();
    for case in [
        Case {
            name: "all are old",
            max_surge: 2,
            nodes: three(),
            pods: old(&["n1", "n2", "n3"]),
            created: &[("n1", Surge), ("n2", Surge)],
            deleted: &[],
        },
        Case {
            name: "a new pod is not available yet",
            max_surge: 1,
            nodes: three(),
            pods: [old(&["n1", "n2", "n3"]), vec![daemon_pod("new", "n1", NEW)]].concat(),
            created: &[],
            deleted: &[],
        },
        Case {
            name: "a new pod is available",
            max_surge: 1,
            nodes: three(),
            pods: [old(&["n1", "n2", "n3"]), vec![ready("new", "n1", NEW)]].concat(),
            created: &[("n2", Surge)],
            deleted: &[("n1", DeleteReason::Replaced)],
        },
        Case {
            name: "unavailable old pods get new ones beyond the limit",
            max_surge: 1,
            nodes: three(),
            pods: vec![daemon_pod("a", "n1", "old"), daemon_pod("b", "n2", "old"), ready("c", "n3", "old")],
            created: &[("n1", OldUnavailable), ("n2", OldUnavailable), ("n3", Surge)],
            deleted: &[],
        },
        Case {
            name: "a node with several new pods surges",
            max_surge: 1,
            nodes: three(),
            pods: [old(&["n2"]), vec![ready("a", "n1", NEW), ready("b", "n1", NEW)]].concat(),
            created: &[],
            deleted: &[],
        },
        Case {
            name: "an old pod that is being deleted does not count",
            max_surge: 1,
            nodes: three(),
            pods: [old(&["n2"]), vec![ready("a", "n1", "old").terminating(), ready("b", "n1", NEW)]].concat(),
            created: &[("n2", Surge)],
            deleted: &[],
        },
        Case {
            name: "on a node that should not run the daemon, an unavailable old pod goes",
            max_surge: 1,
            nodes: vec![node("n1").taint("gpu", "NoSchedule"), node("n2")],
            pods: vec![daemon_pod("a", "n1", "old"), ready("b", "n2", "old")],
            created: &[("n2", Surge)],
            deleted: &[("a", DeleteReason::OldUnavailable)],
        },
        Case {
            name: "on a node that should not run the daemon, an available old pod goes when others are available",
            max_surge: 1,
            nodes: vec![node("n1").taint("gpu", "NoSchedule"), node("n2")],
            pods: vec![ready("a", "n1", "old"), ready("b", "n2", NEW)],
            created: &[],
            deleted: &[("a", DeleteReason::NotPlacedAnyMore)],
        },
        Case {
            name: "on a node that should not run the daemon, an available old pod stays until others are available",
            max_surge: 1,
            nodes: vec![node("n1").taint("gpu", "NoSchedule"), node("n2")],
            pods: vec![ready("a", "n1", "old"), daemon_pod("b", "n2", NEW)],
            created: &[],
            deleted: &[],
        },
        Case {
            name: "a node that does not exist is left alone",
            max_surge: 1,
            nodes: vec![node("n1")],
            pods: vec![ready("a", "n1", "old"), daemon_pod("b", "gone", "old")],
            created: &[("n1", Surge)],
            deleted: &[],
        },
    ] {
        check(&case);
    }
}
