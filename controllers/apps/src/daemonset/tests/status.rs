//! The status.

use serde_json::{Value, json};

use super::fixtures::{NEW, World, daemon_pod, daemon_set, node};
use crate::daemonset::status::{status, with_status};

#[test]
fn every_field_counts_nodes() {
    let nodes = [
        node("n1"),
        node("n2"),
        node("n3"),
        node("n4"),
        node("n5").taint("gpu", "NoSchedule"),
        node("n6").taint("gpu", "NoSchedule"),
    ];
    let pods = [
        daemon_pod("available", "n1", NEW).ready(60),
        daemon_pod("second", "n1", "old").created(1),
        daemon_pod("ready", "n2", "old").ready(59),
        daemon_pod("waiting", "", NEW).made_for("n3"),
        daemon_pod("misscheduled", "n5", NEW).ready(60),
        daemon_pod("nowhere", "gone", NEW).ready(60),
    ];
    let set = daemon_set("agent").min_ready_seconds(60).generation(3).status(json!({ "observedGeneration": 2 }));
    let world = World::of(&set, &nodes, &pods);
    let status = status(&world.snapshot());
    assert_eq!((status.desired_number_scheduled, status.current_number_scheduled), (4, 3));
    assert_eq!((status.number_misscheduled, status.number_ready), (1, 2));
    assert_eq!((status.number_available, status.number_unavailable), (1, 3));
    assert_eq!((status.updated_number_scheduled, status.observed_generation), (2, 3));
}

/// Upstream's `TestNumberReadyStatus`, with half of the nodes between.
#[test]
fn ready_pods_are_counted_as_they_become_ready() {
    for set in [daemon_set("agent"), daemon_set("agent").on_delete()] {
        for (name, ready, expected) in [("none", [false; 2], 0), ("half", [true, false], 1), ("all", [true; 2], 2)] {
            let pods = ["n1", "n2"].map(|node| daemon_pod(node, node, NEW));
            let pods = pods.into_iter().zip(ready).map(|(pod, ready)| if ready { pod.ready(0) } else { pod });
            let world = World::of(&set, &[node("n1"), node("n2")], &pods.collect::<Vec<_>>());
            let status = status(&world.snapshot());
            assert_eq!((status.current_number_scheduled, status.number_ready), (2, expected), "{name}");
        }
    }
}

#[test]
fn a_status_is_written_whole_and_unknown_fields_stay() {
    let set = daemon_set("agent").status(json!({ "numberReady": 7, "collisionCount": 1, "newField": "kept" }));
    let world = World::of(&set, &[node("n1")], &[daemon_pod("a", "n1", NEW).ready(5)]);
    let written = with_status(&world.set, &status(&world.snapshot())).expect("the set must be editable");
    let written: Value = serde_json::from_str(written.as_str()).expect("it is JSON");
    assert_eq!(
        written["status"],
        json!({
            "numberReady": 1,
            "collisionCount": 1,
            "newField": "kept",
            "currentNumberScheduled": 1,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 1,
            "updatedNumberScheduled": 1,
            "numberAvailable": 1,
            "numberUnavailable": 0,
            "observedGeneration": 1,
        })
    );
    assert_eq!(written["spec"], set.0["spec"]);
}
