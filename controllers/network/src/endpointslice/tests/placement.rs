//! Which slice holds which endpoint.

use serde_json::json;

use super::super::placement::{Placement, place};
use super::{endpoint, pods, slice, unready};
use crate::shared::slices::{Draft, Endpoint};

struct Case {
    name: &'static str,
    existing: &'static [&'static str],
    desired: &'static str,
    max: usize,
    created: &'static [&'static str],
    updated: &'static [&'static str],
    deleted: &'static [&'static str],
}

fn endpoints(names: &str) -> Vec<Endpoint> {
    names.split_whitespace().map(endpoint).collect()
}

fn run(existing: &[&str], desired: Vec<Endpoint>, max: usize) -> Placement {
    let existing = existing.iter().enumerate();
    let existing = existing.map(|(at, names)| slice(&format!("web-{at}"), &endpoints(names), &json!({}))).collect();
    place(existing, desired, &[], |_| true, max)
}

fn shown(drafts: &[Draft]) -> Vec<String> {
    let name = |draft: &Draft| draft.existing.as_ref().map(|slice| slice.metadata.key.name().to_owned());
    drafts
        .iter()
        .map(|draft| format!("{}: {}", name(draft).unwrap_or_default(), pods(&draft.endpoints).join(" ")))
        .collect()
}

fn check(case: &Case) {
    let placement = run(case.existing, endpoints(case.desired), case.max);
    assert_eq!(shown(&placement.create), case.created, "{}: created", case.name);
    assert_eq!(shown(&placement.update), case.updated, "{}: updated", case.name);
    let deleted: Vec<&str> = placement.delete.iter().map(|slice| slice.metadata.key.name()).collect();
    assert_eq!(deleted, case.deleted, "{}: deleted", case.name);
    let slices = placement.create.len() + placement.update.len() + placement.unchanged.len() + placement.delete.len();
    assert_eq!(slices, case.existing.len() + placement.create.len(), "{}: each slice is in one list", case.name);
}

#[test]
fn slices_are_filled_as_upstream_fills_them() {
    let case = Case { name: "", existing: &[], desired: "", max: 3, created: &[], updated: &[], deleted: &[] };
    for case in [
        Case { name: "no slice", desired: "a b", created: &[": a b"], ..case },
        Case { name: "more than one slice holds", desired: "a b c d", created: &[": a b c", ": d"], ..case },
        Case { name: "nothing changes", existing: &["a b", "c"], desired: "a b c", ..case },
        Case { name: "one leaves", existing: &["a b", "c"], desired: "a c", updated: &["web-0: a"], ..case },
        Case { name: "all leave", existing: &["a b", "c"], desired: "a b", deleted: &["web-1"], ..case },
        Case {
            name: "the worked example",
            existing: &["a b c", "d"],
            desired: "b c d e f",
            updated: &["web-0: b c e", "web-1: d f"],
            ..case
        },
        Case {
            name: "slices that are updated come first, the fullest of them",
            existing: &["a b", "c d e", "f"],
            desired: "a d e f g",
            updated: &["web-1: d e g", "web-0: a"],
            ..case
        },
        Case {
            name: "the fullest slice with room for all",
            existing: &["a", "b c"],
            desired: "a b c d",
            updated: &["web-1: b c d"],
            ..case
        },
        Case {
            name: "no slice has room for all: a new one takes them",
            existing: &["a b", "c d"],
            desired: "a b c d e f",
            created: &[": e f"],
            ..case
        },
        Case {
            name: "a full new slice, and the rest fits",
            existing: &["a b"],
            desired: "a b c d e f",
            created: &[": c d e"],
            updated: &["web-0: a b f"],
            ..case
        },
        Case {
            name: "a slice with more than it may hold keeps them",
            existing: &["a b c d"],
            desired: "a b c e",
            max: 2,
            created: &[": e"],
            updated: &["web-0: a b c"],
            ..case
        },
        Case {
            name: "an endpoint that is in two slices stays in the first",
            existing: &["a b", "b c"],
            desired: "a b c",
            updated: &["web-1: c"],
            ..case
        },
        Case {
            name: "a slice without endpoints is filled",
            existing: &[""],
            desired: "a",
            updated: &["web-0: a"],
            ..case
        },
    ] {
        check(&case);
    }
}

#[test]
fn an_endpoint_that_changes_is_updated_in_its_place() {
    let changed = vec![endpoint("a"), unready(endpoint("b"))];
    let placement = run(&["a b"], changed, 3);
    assert_eq!(shown(&placement.update), ["web-0: a b"]);
    assert!(!placement.update[0].endpoints[1].is_ready());
    assert_eq!((placement.added, placement.removed), (0, 0));
}

#[test]
fn what_is_added_and_removed_is_counted() {
    let placement = run(&["a b", "c"], endpoints("b d e f"), 3);
    assert_eq!((placement.added, placement.removed), (3, 2));
}

#[test]
fn a_slice_that_lacks_labels_is_updated_and_filled() {
    let existing = vec![slice("web-0", &endpoints("a"), &json!({})), slice("web-1", &endpoints("b"), &json!({}))];
    let has_labels = |slice: &kcm_framework::api::views::EndpointSlice| slice.metadata.key.name() == "web-0";
    let placement = place(existing, endpoints("a b c"), &[], has_labels, 3);
    assert_eq!(shown(&placement.update), ["web-1: b c"]);
}
