//! Owners that are known not to exist.

use super::fixtures::{graph, identity, uid};

#[test]
fn an_absent_owner_is_remembered_for_its_namespace_and_a_cluster_scoped_one_for_all() {
    let (mut graph, _) = graph(&["a", "x<a"]);
    graph.remove(&uid("a"));
    assert!(graph.is_absent(&identity("default", "a")));
    assert!(!graph.is_absent(&identity("shop", "a")), "it was not looked up in another namespace");
    graph.remember_absent(identity("", "n"));
    assert!(graph.is_absent(&identity("default", "n")) && graph.is_absent(&identity("", "n")));
}

#[test]
fn an_object_without_dependents_is_not_remembered() {
    let (mut graph, _) = graph(&["a"]);
    graph.remove(&uid("a"));
    assert!(!graph.is_absent(&identity("default", "a")));
}

#[test]
fn the_latest_two_thousand_are_remembered() {
    let (mut graph, _) = graph(&[]);
    for number in 0..2_001 {
        graph.remember_absent(identity("default", &format!("a{number}")));
    }
    assert!(!graph.is_absent(&identity("default", "a0")));
    assert!(graph.is_absent(&identity("default", "a1")) && graph.is_absent(&identity("default", "a2000")));
}
