//! What changes of the graph lead to, and what is done about an object.

use std::time::Duration;

use super::fixtures::{Object, graph, identity, observe, shown, uid};
use crate::garbage_collector::graph::{Graph, Task};

fn task(graph: &Graph, name: &str) -> Task {
    graph.item(&uid(name)).expect("it is in the graph").task
}

#[test]
fn the_effects_of_an_object_that_is_observed() {
    for (name, objects, expected) in [
        ("without owners", vec!["a"], vec![]),
        ("its owner is there", vec!["a", "x<a"], vec![]),
        ("its owner is only named: it is looked up", vec!["x<a"], vec!["a"]),
        ("the owner is named again", vec!["x<a", "y<a"], vec![]),
        ("the owner comes later", vec!["x<a", "a"], vec![]),
        ("the same object again", vec!["x<a", "x<a"], vec![]),
        ("another owner", vec!["a", "b", "x<a", "x<b"], vec![]),
        ("another owner that is only named", vec!["a", "x<a", "x<b"], vec!["b"]),
        ("it blocks its owner no more", vec!["a", "x<a!", "x<a"], vec!["a"]),
        ("it loses a blocked owner", vec!["a", "x<a!", "x"], vec!["a"]),
        ("it loses an owner that it did not block", vec!["a", "x<a", "x"], vec![]),
        ("it is deleted", vec!["a", "x<a", "a-"], vec![]),
        ("it is deleted in the foreground", vec!["a", "x<a", "a!"], vec!["x", "a"]),
        ("it is there as deleted in the foreground", vec!["x<a", "a!"], vec!["x", "a"]),
        ("it is still deleted in the foreground", vec!["a!", "a!"], vec![]),
        ("its dependents are orphaned", vec!["a", "x<a", "a?"], vec!["a?"]),
        ("they are still orphaned", vec!["a?", "a?"], vec![]),
        ("a namespaced owner is elsewhere", vec!["shop/a", "x<a"], vec!["x/a", "x"]),
        ("the owner of others turns up elsewhere", vec!["x<a", "y<a", "shop/a"], vec!["x/a", "x", "y/a", "y"]),
        ("a namespaced owner of a cluster-scoped object", vec!["a", "/x<a"], vec!["x/a", "x"]),
        ("it is named from two namespaces", vec!["x<a", "shop/y<a"], vec!["y"]),
        ("it is named from a namespace and from none", vec!["/x<a", "y<a"], vec!["y"]),
    ] {
        let (_, effects) = graph(&objects);
        assert_eq!(shown(&effects), expected, "{name}");
    }
}

#[test]
fn a_cluster_scoped_owner_may_be_named_from_everywhere() {
    let mut graph = Graph::default();
    let node = |text: &str| Object::parse(text).owner_field(0, "kind", "Node");
    let named_first = observe(&mut graph, &node("x<n"));
    assert_eq!(shown(&named_first), ["n"]);
    assert_eq!(shown(&observe(&mut graph, &Object::parse("/n"))), [""; 0]);
    for text in ["y<n", "shop/z<n", "/m<n"] {
        assert_eq!(shown(&observe(&mut graph, &node(text))), [""; 0], "{text}");
    }
}

#[test]
fn a_reference_with_other_coordinates_is_looked_up() {
    for field in ["apiVersion", "kind", "name"] {
        let wrong = Object::parse("x<a").owner_field(0, field, "other");
        let (mut after, _) = graph(&["a"]);
        assert_eq!(shown(&observe(&mut after, &wrong)), ["x"], "{field}, the owner is known");
        assert_eq!(task(&after, "x"), Task::LookUp);
        let mut before = Graph::default();
        observe(&mut before, &wrong);
        assert_eq!(shown(&observe(&mut before, &Object::parse("a"))), ["x"], "{field}, the owner comes later");
    }
}

#[test]
fn the_effects_of_an_object_that_is_gone() {
    for (name, objects, expected) in [
        ("it had nothing", vec!["a"], vec![]),
        ("its dependents", vec!["a", "x<a", "y<a"], vec!["x", "y"]),
        ("an owner that waits for it", vec!["b!", "a<b"], vec!["b"]),
        ("an owner that does not", vec!["b", "a<b"], vec![]),
        ("it was only named", vec!["x<a"], vec!["x"]),
        ("it is unknown", vec!["b"], vec![]),
    ] {
        let (mut graph, _) = graph(&objects);
        assert_eq!(shown(&graph.remove(&uid("a"))), expected, "{name}");
        let is_done = graph.item(&uid("a")).is_none_or(|item| item.task == Task::None);
        assert!(is_done, "{name}");
    }
}

#[test]
fn an_object_that_was_lost_is_looked_up_before_its_dependents_are() {
    let (mut graph, _) = graph(&["a", "x<a"]);
    assert_eq!(shown(&graph.lose(&uid("a"))), ["a"]);
    assert_eq!(task(&graph, "a"), Task::LookUp);
    assert!(!graph.is_absent(&identity("default", "a")));
    assert_eq!(shown(&graph.confirm_absent(&identity("default", "a"))), ["x"]);
    assert!(graph.is_absent(&identity("default", "a")));

    let (mut alone, _) = super::fixtures::graph(&["b!", "a<b"]);
    assert_eq!(shown(&alone.lose(&uid("a"))), ["b"], "nothing depends on it");
    assert_eq!(alone.item(&uid("a")), None);
}

#[test]
fn an_informer_that_is_behind_shows_an_absent_owner_to_all_its_dependents_once_more() {
    let (mut graph, _) = graph(&["x<a"]);
    graph.confirm_absent(&identity("default", "a"));
    assert_eq!(shown(&observe(&mut graph, &Object::parse("y<a"))), ["y"], "a later dependent is processed");
    observe(&mut graph, &Object::parse("a"));
    assert_eq!((task(&graph, "x"), task(&graph, "y")), (Task::None, Task::None));
    assert_eq!(shown(&graph.remove(&uid("a"))), ["x", "y"]);
    assert_eq!((task(&graph, "x"), task(&graph, "a")), (Task::LookUp, Task::None));
    graph.remove(&uid("x"));
    graph.remove(&uid("y"));
    assert_eq!(graph.item(&uid("a")), None, "it is forgotten with the last one");
}

#[test]
fn an_owner_that_is_only_named_is_forgotten_with_its_last_dependent() {
    let (mut graph, _) = graph(&["x<a", "y<a"]);
    graph.remove(&uid("x"));
    assert!(graph.item(&uid("a")).is_some());
    observe(&mut graph, &Object::parse("y"));
    assert_eq!(graph.item(&uid("a")), None);
}

#[test]
fn an_absent_identity_ends_only_those_that_name_it() {
    // Two dependents name one uid in two namespaces.
    let (mut graph, _) = graph(&["x<a", "shop/y<a"]);
    assert_eq!(graph.item(&uid("a")).unwrap().identity, identity("default", "a"));
    assert_eq!(shown(&graph.confirm_absent(&identity("default", "a"))), ["x"]);
    assert_eq!(graph.item(&uid("a")).unwrap().identity, identity("shop", "a"), "the other one is looked up next");
    assert_eq!(shown(&graph.confirm_absent(&identity("shop", "a"))), ["y"]);
    assert_eq!(graph.item(&uid("a")).unwrap().identity, identity("default", "a"), "and the first again");

    // An informer has the object under another name.
    let (mut known, _) = super::fixtures::graph(&["shop/a", "x<a", "shop/y<a"]);
    assert_eq!(shown(&known.confirm_absent(&identity("default", "a"))), ["x"]);
    assert_eq!(known.item(&uid("a")).unwrap().identity, identity("shop", "a"));
    assert!(known.is_absent(&identity("default", "a")) && !known.is_absent(&identity("shop", "a")));
}

#[test]
fn what_is_done_about_an_object() {
    let wait = |is_blocked, process: &[&str]| Task::Wait {
        is_blocked,
        process: process.iter().map(|name| uid(name)).collect(),
    };
    for (name, objects, expected) in [
        ("it has no owner", vec!["x"], Task::None),
        ("its owner is there", vec!["a", "x<a"], Task::None),
        ("its owner is deleted in the background", vec!["a-", "x<a"], Task::None),
        ("its owner orphans it", vec!["a?", "x<a"], Task::None),
        ("its owner is only named", vec!["x<a"], Task::LookUp),
        ("its owner waits for it", vec!["a!", "x<a!"], Task::LookUp),
        ("one of its owners is only named", vec!["a", "x<a b"], Task::LookUp),
        ("its owner is elsewhere", vec!["shop/a", "x<a"], Task::LookUp),
        ("it is terminating", vec!["x-<a"], Task::None),
        ("it waits for nothing", vec!["x!"], wait(false, &[])),
        ("it waits for a dependent that does not block it", vec!["x!", "y<x"], wait(false, &[])),
        ("it waits for a dependent", vec!["x!", "y<x!", "z<x"], wait(true, &["y"])),
        ("it waits for one that waits too", vec!["x!", "y!<x!"], wait(true, &[])),
        ("it waits for itself", vec!["x!<x!"], Task::BreakCycle),
        ("it waits for itself through others", vec!["x!<z!", "y!<x!", "z!<y!"], Task::BreakCycle),
        ("one of the cycle does not wait yet", vec!["x!<z!", "y!<x!", "z<y!"], wait(true, &[])),
        ("one of the cycle blocks nothing", vec!["x!<z!", "y!<x!", "z!<y"], wait(true, &[])),
        ("a cycle that it is not in", vec!["x!", "y!<x! z!", "z!<y!"], wait(true, &[])),
        ("it waits for itself and for another", vec!["x!<x!", "y<x!"], wait(true, &["y"])),
    ] {
        let (graph, _) = graph(&objects);
        assert_eq!(task(&graph, "x"), expected, "{name}");
    }
}

#[test]
fn an_owner_that_no_informer_has_is_looked_up_ever_less_often() {
    let (mut graph, _) = graph(&["x<a"]);
    let mut delays: Vec<u128> = (0..30).map(|_| graph.next_lookup(&uid("a")).unwrap().as_millis()).collect();
    let longest = delays.split_off(18);
    assert_eq!(delays[..4], [5, 10, 20, 40]);
    assert!(longest.iter().all(|delay| *delay == 1_000_000), "{longest:?}");
    observe(&mut graph, &Object::parse("a"));
    assert_eq!(graph.next_lookup(&uid("a")), None::<Duration>);
}

#[test]
fn what_is_owned_by_objects_of_a_kind_that_is_not_served_any_more_is_looked_up_and_what_they_block_goes() {
    let (mut graph, _) = graph(&["a!", "x<a!", "y<x", "z"]);
    let maps = Object::parse("a").resource();
    assert_eq!(task(&graph, "a"), Task::Wait { is_blocked: true, process: vec![uid("x")] });
    // `x` is of another resource, which is removed.
    let others = kcm_framework::api::Resource::namespaced("example.com", "v1", "widgets", "Widget");
    graph.observe(&std::sync::Arc::new(others.clone()), &Object::parse("x<a!").shared());
    assert_eq!(shown(&graph.forget(&others)), ["a", "x"]);
    assert_eq!(task(&graph, "a"), Task::Wait { is_blocked: false, process: vec![] });
    assert_eq!(task(&graph, "x"), Task::LookUp, "its dependents name it");
    assert_eq!(shown(&graph.forget(&others)), [""; 0]);
    graph.forget(&maps);
    assert!(graph.item(&uid("z")).is_none());
}
