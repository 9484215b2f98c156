//! Decisions in words.

use super::fixtures::{Object, graph, uid};
use crate::garbage_collector::plan::{OwnerState, plan};
use OwnerState::{Absent, Solid, Waiting};

#[test]
fn the_task_of_an_object_names_it_and_what_it_waits_for() {
    const X: &str = "[v1/ConfigMap, namespace: default, name: x, uid: x]";
    for (objects, expected) in [
        (vec!["a", "x<a"], "does nothing, as it is being deleted or all its owners exist"),
        (vec!["x<a b"], "is looked up with its owners: ConfigMap \"a\", ConfigMap \"b\""),
        (vec!["x!"], "is deleted in the foreground, and no dependent blocks it"),
        (
            vec!["x!", "y<x!", "z<x!"],
            "is deleted in the foreground, and waits for blocking dependents; 2 of them are processed",
        ),
        (vec!["x!<y!", "y!<x!"], "unblocks its owners, as it waits for itself in a cycle"),
    ] {
        let (graph, _) = graph(&objects);
        let words = graph.item(&uid("x")).expect("it is in the graph").explain();
        assert_eq!(words, format!("{X}: {expected}"), "{objects:?}");
    }
    let (graph, _) = graph(&["y<x"]);
    assert!(graph.item(&uid("x")).unwrap().explain().ends_with("is looked up with its owners: none"), "a virtual node");
}

#[test]
fn an_action_names_the_owners_and_their_states() {
    for (objects, owners, expected) in [
        (vec!["x"], vec![], "keeps it, as it names no owner"),
        (vec!["x<a"], vec![Solid], "keeps it, as all its owners exist"),
        (vec!["x-<a"], vec![Absent], "does nothing, as it is being deleted"),
        (vec!["x<a b"], vec![Absent, Solid], "removes the references to 1 of its 2 owners, as another one exists"),
        (
            vec!["x<a b"],
            vec![Absent, Waiting],
            "deletes it in the background: ConfigMap \"a\" does not exist, ConfigMap \"b\" waits for its dependents",
        ),
        (
            vec!["x<a", "y<x"],
            vec![Waiting],
            "deletes it in the foreground, as an owner waits for it and it has dependents",
        ),
        (
            vec!["x<a", "y!<x"],
            vec![Waiting],
            "unblocks its owners, as a dependent may wait for it, and deletes it in the foreground, as an owner waits \
             for it and it has dependents",
        ),
    ] {
        let live = Object::parse(objects[0]).meta();
        let (graph, _) = graph(&objects);
        let action = plan(&graph.item(&uid("x")).expect("it is in the graph"), &live, &owners);
        assert_eq!(action.explain(&live, &owners), expected, "{objects:?}");
    }
}
