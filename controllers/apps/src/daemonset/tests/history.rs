//! Which revision is current, and which ones go.

use std::sync::Arc;

use kcm_framework::api::views::ControllerRevision;
use serde_json::json;

use super::fixtures::{NAMESPACE, daemon_pod, daemon_set};
use crate::daemonset::history::{Current, History, hash_of, pods_of_duplicates};
use crate::shared::revisions::RevisionData;
use crate::tests::fixtures::{ObjectBuilder, build};

fn data(image: &str) -> RevisionData {
    RevisionData::of(daemon_set("agent").image(image).build().template()).expect("the template must be valid")
}

fn revision(name: &str, number: i64, image: &str) -> Arc<ControllerRevision> {
    let data: serde_json::Value = serde_json::from_str(data(image).as_str()).expect("it is JSON");
    let revision = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "uid": format!("uid-of-{name}"),
            "labels": { "app": "agent", "controller-revision-hash": name },
        },
        "data": data,
        "revision": number,
    });
    ObjectBuilder::<ControllerRevision>::from(revision).build()
}

fn names(revisions: &[Arc<ControllerRevision>]) -> Vec<&str> {
    revisions.iter().map(|revision| revision.metadata.key.name()).collect()
}

#[test]
fn a_template_without_a_revision_gets_the_next_number() {
    let history = History::of(vec![revision("b", 7, "image:2"), revision("a", 3, "image:1")], &data("image:3"));
    assert_eq!(history.current, Current::Create { number: 8 });
    assert_eq!(names(&history.old), ["a", "b"]);
    assert_eq!(History::of(vec![], &data("image:1")).current, Current::Create { number: 1 });
}

#[test]
fn the_last_revision_of_the_template_is_current_and_a_rollback_gives_it_the_highest_number() {
    let of = |numbers: [i64; 3]| {
        let [a, b, c] = numbers;
        History::of(
            vec![revision("a", a, "image:1"), revision("b", b, "image:2"), revision("c", c, "image:1")],
            &data("image:1"),
        )
    };
    for (numbers, kept, renumber) in [([1, 2, 3], "c", None), ([3, 2, 1], "a", None), ([1, 9, 3], "c", Some(10))] {
        let Current::Keep { revision, renumber: number, duplicates } = of(numbers).current else {
            panic!("there is one")
        };
        assert_eq!((hash_of(&revision), number, duplicates.len()), (kept, renumber, 1), "{numbers:?}");
    }
}

#[test]
fn revisions_without_a_hash_have_that_of_their_name() {
    let bare = ObjectBuilder::<ControllerRevision>::from(json!({
        "metadata": { "namespace": NAMESPACE, "name": "agent-1", "labels": { "app": "agent" } }, "data": {}, "revision": 1,
    }))
    .build();
    assert_eq!(hash_of(&bare), "agent-1");
    let history = History::of(vec![bare, revision("b", 2, "image:2")], &data("image:1"));
    assert_eq!(names(&history.unlabelled), ["agent-1"]);
}

#[test]
fn old_revisions_beyond_the_limit_go_unless_a_pod_has_them() {
    let revisions = (1..=5).map(|number| revision(&format!("r{number}"), number, &format!("image:{number}"))).collect();
    let history = History::of(revisions, &data("image:5"));
    let pods = build(&[daemon_pod("a", "n1", "r2"), daemon_pod("b", "n2", "r5")]);
    for (limit, expected) in
        [(10, vec![]), (4, vec![]), (3, vec!["r1"]), (1, vec!["r1", "r3", "r4"]), (0, vec!["r1", "r3", "r4"])]
    {
        assert_eq!(names(&history.exceeding(limit, &pods)), expected, "{limit}");
    }
}

#[test]
fn only_pods_of_duplicates_get_another_hash() {
    let duplicates = [revision("twin", 1, "image:1")];
    let pods = build(&[daemon_pod("a", "n1", "twin"), daemon_pod("b", "n2", "old"), daemon_pod("c", "n3", "kept")]);
    let relabelled: Vec<_> = pods_of_duplicates(&duplicates, &pods).map(|pod| pod.metadata.key.name()).collect();
    assert_eq!(relabelled, ["a"]);
}
