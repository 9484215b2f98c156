use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::super::reports::{Change, Reports};

fn sent(changes: &[(&str, Change)]) -> BTreeMap<Box<str>, Change> {
    changes.iter().map(|(volume, change)| ((*volume).into(), *change)).collect()
}

#[test]
fn b_11_changes_are_gathered_and_end_when_they_are_shown() {
    let reports = Reports::default();
    assert!(reports.request("n", "v", Change::Report));
    assert!(!reports.request("n", "v", Change::Report), "it is requested already");
    assert!(reports.request("n", "w", Change::Withdraw));
    assert!(reports.has("n") && !reports.has("m"));
    assert_eq!(reports.send("n"), sent(&[("v", Change::Report), ("w", Change::Withdraw)]));
    assert_eq!(reports.send("n"), sent(&[]), "they are sent already");
    assert!(!reports.request("n", "v", Change::Report), "it is under way");
    let volumes: Vec<Box<str>> = vec!["v".into(), "w".into()];
    assert_eq!(reports.shown("n"), volumes);
    assert!(!reports.has("n"));
}

#[test]
fn ad_25_a_report_under_way_counts_until_it_is_shown() {
    let reports = Reports::default();
    reports.request("n", "v", Change::Report);
    assert!(!reports.may_be_reported("n", "v"), "it is not sent");
    reports.send("n");
    assert!(reports.may_be_reported("n", "v"));
    assert!(reports.request("n", "v", Change::Withdraw));
    assert!(reports.may_be_reported("n", "v"), "the withdrawal is not sent");
    assert_eq!(reports.shown("n").len(), 1);
    assert_eq!(reports.send("n"), sent(&[("v", Change::Withdraw)]));
    assert!(!reports.may_be_reported("n", "v"));
}

#[test]
fn ad_25_a_report_that_was_not_sent_is_cancelled_before_a_detach() {
    let reports = Reports::default();
    reports.request("n", "v", Change::Report);
    reports.cancel_report("n", "v");
    assert_eq!(reports.send("n"), sent(&[]));
    reports.request("n", "v", Change::Report);
    reports.send("n");
    reports.cancel_report("n", "v");
    assert!(reports.may_be_reported("n", "v"), "it was sent");
    reports.request("n", "v", Change::Withdraw);
    reports.cancel_report("n", "v");
    assert_eq!(reports.send("n"), sent(&[("v", Change::Withdraw)]));
}

#[test]
fn requests_can_be_cancelled_and_replaced() {
    let reports = Reports::default();
    reports.request("n", "v", Change::Report);
    reports.cancel("v", &["n".to_owned()].into());
    assert!(reports.has("n"), "it is requested in this round");
    reports.cancel("w", &BTreeSet::new());
    reports.cancel("v", &BTreeSet::new());
    assert!(!reports.has("n"));
    reports.request("n", "v", Change::Withdraw);
    reports.request("n", "v", Change::Report);
    assert_eq!(reports.send("n"), sent(&[("v", Change::Report)]));
    reports.request("n", "v", Change::Withdraw);
    assert!(!reports.request("n", "v", Change::Report), "the patch under way reports it");
    assert_eq!(reports.send("n"), sent(&[]));
}

#[test]
fn a_patch_that_fails_is_sent_again() {
    let reports = Reports::default();
    reports.request("n", "v", Change::Report);
    reports.request("n", "w", Change::Report);
    reports.send("n");
    reports.request("n", "w", Change::Withdraw);
    let now = Instant::now();
    reports.failed("n", now);
    assert_eq!(reports.patched("n"), Some(now), "earlier live reads do not count");
    assert!(reports.may_be_reported("n", "v"), "the response may have been lost");
    reports.shown("n");
    assert_eq!(reports.send("n"), sent(&[("v", Change::Report), ("w", Change::Withdraw)]));
    let volumes: Vec<Box<str>> = vec!["v".into(), "w".into()];
    assert_eq!(reports.forget("n"), volumes);
    assert!(!reports.has("n"));
}
