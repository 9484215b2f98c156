//! What a round leaves, and what follows it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{CONFIG_MAPS, DEPLOYMENTS, listing};
use crate::namespace::content::{NextStep, ResourceResult, Round, RoundFailure, discovery_failure, grace_of};
use crate::namespace::observe::{PODS, PodItem};

const SECOND: Duration = Duration::from_secs(1);

fn pod(grace: Option<i64>, phase: &str) -> PodItem {
    let pod = json!({ "spec": { "terminationGracePeriodSeconds": grace }, "status": { "phase": phase } });
    serde_json::from_value(pod).unwrap()
}

#[test]
fn pods_take_the_longest_grace_period_of_those_that_run_since_the_deletion_of_the_namespace() {
    let deleted_at: Timestamp = "2026-01-02T12:00:00Z".parse().unwrap();
    for (name, pods, passed, expected) in [
        ("no pod", vec![], 0, 0),
        ("one", vec![pod(Some(30), "Running")], 5, 30),
        ("the longest", vec![pod(Some(30), "Running"), pod(Some(60), "Pending"), pod(Some(5), "Running")], 5, 60),
        ("finished ones do not count", vec![pod(Some(600), "Succeeded"), pod(Some(900), "Failed")], 5, 0),
        ("none is given", vec![pod(None, "Running")], 5, 0),
        ("a second is left", vec![pod(Some(30), "Running")], 29, 30),
        ("it has passed", vec![pod(Some(30), "Running")], 30, 0),
        ("a negative one", vec![pod(Some(-1), "Running")], 0, 0),
        ("the namespace is deleted in the future", vec![pod(Some(30), "Running")], -60, 30),
    ] {
        let now = deleted_at + jiff::SignedDuration::from_secs(passed);
        assert_eq!(grace_of(&pods, deleted_at, now), Duration::from_secs(expected), "{name}");
    }
}

fn round(results: Vec<ResourceResult>) -> Round {
    Round { discovery_failure: None, results }
}

#[test]
fn the_next_step_follows_from_what_remains() {
    const HELD: &[&str] = &["example.com/hold"];
    let grace = |seconds| Duration::from_secs(seconds);
    for (name, results, expected) in [
        ("there is no resource", vec![], NextStep::Finalize),
        ("nothing remains", vec![ResourceResult::after(PODS, &listing(&[]), grace(30))], NextStep::Finalize),
        (
            "pods stop: half of 30 s and one",
            vec![ResourceResult::after(PODS, &listing(&[("a-", &[])]), grace(30))],
            NextStep::Wait(16 * SECOND),
        ),
        (
            "finalizers: half of 15 s and one",
            vec![ResourceResult::after(CONFIG_MAPS, &listing(&[("a-", HELD)]), grace(0))],
            NextStep::Wait(8 * SECOND),
        ),
        (
            "the longest estimate counts",
            vec![
                ResourceResult::after(CONFIG_MAPS, &listing(&[("a-", HELD)]), grace(0)),
                ResourceResult::after(PODS, &listing(&[("a-", &[])]), grace(60)),
            ],
            NextStep::Wait(31 * SECOND),
        ),
        (
            "a grace period counts before finalizers",
            vec![ResourceResult::after(PODS, &listing(&[("a-", HELD)]), grace(2))],
            NextStep::Wait(2 * SECOND),
        ),
        (
            "a grace period beyond all clocks",
            vec![ResourceResult::after(PODS, &listing(&[("a-", &[])]), grace(u64::MAX))],
            NextStep::Wait(3600 * SECOND),
        ),
        (
            "objects that nothing holds up",
            vec![
                ResourceResult::after(DEPLOYMENTS, &listing(&[("a-", &[])]), grace(0)),
                ResourceResult::after(CONFIG_MAPS, &listing(&[("a-", HELD)]), grace(0)),
            ],
            NextStep::Retry(RoundFailure(vec![
                "unexpected items still remain in namespace: shop for gvr: apps/v1, Resource=deployments".to_owned(),
            ])),
        ),
        (
            "pods whose grace period has passed",
            vec![ResourceResult::after(PODS, &listing(&[("a-", &[])]), grace(0))],
            NextStep::Retry(RoundFailure(vec![
                "failed to delete pods for namespace: shop, err: unexpected items still remain in namespace: shop for \
                 gvr: /v1, Resource=pods"
                    .to_owned(),
            ])),
        ),
    ] {
        assert_eq!(round(results).next_step("shop"), expected, "{name}");
    }
}

#[test]
fn a_namespace_is_not_finalized_while_a_resource_is_unknown() {
    let round = Round { discovery_failure: Some("no".to_owned()), results: vec![ResourceResult::gone(PODS)] };
    assert_eq!(round.next_step("shop"), NextStep::Retry(RoundFailure(vec!["no".to_owned()])));
}

#[test]
fn a_discovery_failure_names_the_api_services() {
    let broken = |rows: &[(&str, &str)]| -> BTreeMap<String, String> {
        rows.iter().map(|(group, reason)| ((*group).to_owned(), (*reason).to_owned())).collect()
    };
    assert_eq!(discovery_failure(&broken(&[])), None);
    assert_eq!(
        discovery_failure(&broken(&[("metrics.k8s.io/v1beta1", "no answer"), ("/v1", "x")])).unwrap(),
        "Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: \
         /v1: x, metrics.k8s.io/v1beta1: no answer (API service v1beta1.metrics.k8s.io)"
    );
}
