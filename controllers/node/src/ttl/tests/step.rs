//! The step of a cluster, and the annotation.

use crate::ttl::step::{Step, seconds_of};

#[test]
fn s52_a_step_changes_when_the_size_leaves_its_range() {
    // The numbers of Nodes one after the other, and the seconds after each.
    for (name, sizes) in [
        ("a hundred and one and back", &[(0, 0), (100, 0), (101, 15), (90, 15), (89, 0)][..]),
        ("up through all steps", &[(500, 15), (501, 30), (1000, 30), (1001, 60), (2000, 60), (2001, 300)]),
        ("down through all steps", &[(2001, 300), (1800, 300), (1799, 60), (900, 60), (899, 30), (450, 30), (449, 15)]),
        ("from nothing to ten thousand at once", &[(10_000, 300), (0, 0)]),
    ] {
        let mut step = Step::FIRST;
        for (nodes, seconds) in sizes {
            step = step.after(*nodes);
            assert_eq!(step.seconds(), *seconds, "{name}: {nodes} nodes");
        }
    }
}

#[test]
fn at_the_start_an_overlap_is_decided_by_what_most_nodes_carry() {
    for (name, nodes, present, seconds) in [
        ("an empty cluster", 0, vec![], 0),
        ("95 new nodes", 95, vec![], 0),
        ("95 nodes after 101", 95, vec![15; 95], 15),
        ("95 nodes, most of which have 15", 95, [vec![15; 50], vec![0; 45]].concat(), 15),
        ("95 nodes, half and half", 94, [vec![15; 47], vec![0; 47]].concat(), 0),
        ("95 nodes with a number of no step", 95, vec![7; 95], 0),
        ("95 nodes with the number of a step that does not fit", 95, vec![300; 95], 0),
        ("101 nodes without a TTL", 101, vec![0; 101], 15),
        ("89 nodes with a TTL of 15 s", 89, vec![15; 89], 0),
        ("1900 nodes after 2001", 1900, vec![300; 1900], 300),
    ] {
        assert_eq!(Step::at_start(nodes, present).seconds(), seconds, "{name}");
    }
}

#[test]
fn s53_an_annotation_is_read_as_a_decimal_number() {
    for (text, seconds) in [
        (Some("15"), Some(15)),
        (Some("+015"), Some(15)),
        (Some("-1"), Some(-1)),
        (Some(""), None),
        (Some(" 15"), None),
        (Some("15s"), None),
        (Some("1.5"), None),
        (None, None),
    ] {
        assert_eq!(seconds_of(text), seconds, "{text:?}");
    }
}
