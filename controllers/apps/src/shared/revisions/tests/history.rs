//! The order of revisions, and which of them go.

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::ControllerRevision;
use serde_json::json;

use crate::shared::revisions::{next_revision, oldest_unused, sort};

fn revision(name: &str, number: i64, created: Option<&str>) -> Arc<ControllerRevision> {
    let json = json!({ "metadata": { "name": name, "creationTimestamp": created }, "revision": number });
    Arc::new(ControllerRevision::decode(&json.to_string()).unwrap())
}

fn names<'a>(revisions: impl IntoIterator<Item = &'a Arc<ControllerRevision>>) -> Vec<&'a str> {
    revisions.into_iter().map(|revision| revision.metadata.key.name()).collect()
}

#[test]
fn revisions_are_sorted_by_number_then_age_then_name() {
    let (early, late) = (Some("2026-01-01T00:00:00Z"), Some("2026-01-01T00:00:01Z"));
    let mut revisions =
        [revision("d", 2, early), revision("c", 1, late), revision("b", 1, early), revision("a", 1, late)];
    sort(&mut revisions);
    assert_eq!(names(&revisions), ["b", "a", "c", "d"]);
}

#[test]
fn the_next_number_is_after_the_highest() {
    assert_eq!(next_revision(&[]), 1);
    assert_eq!(next_revision(&[revision("a", 7, None), revision("b", 3, None)]), 8);
    assert_eq!(next_revision(&[revision("a", -7, None)]), 1);
    assert_eq!(next_revision(&[revision("a", i64::MAX, None)]), i64::MAX);
}

#[test]
fn the_oldest_go_first_and_live_ones_never() {
    let revisions: Vec<_> =
        ["a", "b", "c", "d"].into_iter().zip(1..).map(|(name, at)| revision(name, at, None)).collect();
    let going = |count| names(oldest_unused(&revisions, |revision| revision.metadata.key.name() == "b", count));
    assert_eq!(going(0), Vec::<&str>::new());
    assert_eq!(going(2), ["a", "c"]);
    assert_eq!(going(9), ["a", "c", "d"]);
}
