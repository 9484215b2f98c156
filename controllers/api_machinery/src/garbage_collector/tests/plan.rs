//! What is done about an object when its owners have been looked up.

use kcm_framework::client::DeletionPropagation::{Background, Foreground, Orphan};
use serde_json::json;

use super::fixtures::{Object, graph, uid};
use crate::garbage_collector::plan::{Action, KeepReason, OwnerState, plan};
use OwnerState::{Absent, Solid, Waiting};

/// The plan for `x` of these objects, where live reads show `live` and its owners in these states.
fn of(objects: &[&str], live: &Object, owners: &[OwnerState]) -> Action {
    let (graph, _) = graph(objects);
    plan(&graph.item(&uid("x")).expect("it is in the graph"), &live.meta(), owners)
}

#[test]
fn the_action_follows_from_the_states_of_the_owners() {
    let remove = |owners: &[&str]| Action::RemoveReferences(owners.iter().map(|name| uid(name)).collect());
    for (name, objects, owners, expected) in [
        ("no owner any more", vec!["x"], vec![], Action::Keep(KeepReason::NoOwner)),
        ("one is there", vec!["x<a"], vec![Solid], Action::Keep(KeepReason::Owned)),
        ("one is gone", vec!["x<a"], vec![Absent], Action::Delete(Background)),
        ("both are gone", vec!["x<a b"], vec![Absent, Absent], Action::Delete(Background)),
        ("one of two is gone", vec!["x<a b"], vec![Absent, Solid], remove(&["a"])),
        ("one waits, one is there", vec!["x<a b"], vec![Solid, Waiting], remove(&["b"])),
        ("one waits, one is gone, one is there", vec!["x<a b c"], vec![Waiting, Absent, Solid], remove(&["a", "b"])),
        ("one waits", vec!["x<a"], vec![Waiting], Action::Delete(Background)),
        ("one waits, one is gone", vec!["x<a b"], vec![Waiting, Absent], Action::Delete(Background)),
        (
            "one waits, and it has dependents",
            vec!["x<a", "y<x"],
            vec![Waiting],
            Action::DeleteInForeground { unblock: false },
        ),
        (
            "and one of these waits too",
            vec!["x<a", "y!<x"],
            vec![Waiting],
            Action::DeleteInForeground { unblock: true },
        ),
        ("it has dependents, and its owner is gone", vec!["x<a", "y<x"], vec![Absent], Action::Delete(Background)),
        ("it is terminating by now", vec!["x-<a"], vec![Absent], Action::Keep(KeepReason::Terminating)),
    ] {
        assert_eq!(of(&objects, &Object::parse(objects[0]), &owners), expected, "{name}");
    }
}

#[test]
fn a_finalizer_for_one_of_the_policies_decides() {
    for (finalizers, expected) in [
        (json!(["orphan"]), Orphan),
        (json!(["foregroundDeletion"]), Foreground),
        (json!(["foregroundDeletion", "orphan"]), Orphan),
        (json!(["example.com/other"]), Background),
    ] {
        let mut live = Object::parse("x<a");
        live.0["metadata"]["finalizers"] = finalizers.clone();
        assert_eq!(of(&["x<a"], &live, &[Absent]), Action::Delete(expected), "{finalizers}");
    }
}
