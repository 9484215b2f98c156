//! Grouping of pods, by the cases of upstream's `TestGetNodesToDaemonPods`.

use super::fixtures::{NEW, daemon_pod, now, targets};
use crate::daemonset::pods_by_node::{PodsByNode, next_availability};
use crate::tests::fixtures::build;

#[test]
fn pods_belong_to_the_node_that_they_run_on_or_are_made_for() {
    let pods = build(&[
        daemon_pod("a", "n1", NEW),
        daemon_pod("b", "", NEW).made_for("n2"),
        daemon_pod("c", "n1", NEW).created(9000),
        daemon_pod("nowhere", "", NEW).unassigned(),
        daemon_pod("failed", "n1", NEW).phase("Failed").created(1),
        daemon_pod("going", "n2", NEW).terminating(),
        daemon_pod("gone", "n1", NEW).phase("Succeeded").terminating(),
    ]);
    let grouped = PodsByNode::of(&pods, targets());
    let names: Vec<(&str, Vec<&str>)> =
        grouped.iter().map(|(node, pods)| (node, pods.iter().map(|pod| pod.metadata.key.name()).collect())).collect();
    assert_eq!(names, [("n1", vec!["c", "a", "failed"]), ("n2", vec!["going", "b"])]);
}

#[test]
fn the_next_pod_is_available_min_ready_seconds_after_it_became_ready() {
    let seconds = |pods: &[_]| next_availability(&build(pods), 60, now()).map(|at| at.duration_since(now()).as_secs());
    assert_eq!(seconds(&[daemon_pod("a", "n1", NEW)]), None);
    assert_eq!(seconds(&[daemon_pod("a", "n1", NEW).ready(60)]), None);
    assert_eq!(seconds(&[daemon_pod("a", "n1", NEW).ready(10), daemon_pod("b", "n2", NEW).ready(50)]), Some(10));
}
