//! What a budget wants, and how many disruptions it allows.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use kcm_framework::ReconcileError;
use kcm_framework::api::Uid;
use serde_json::{Value, json};

use super::{budget, budget_json, view_of};
use crate::disruption::controllers::Controllers;
use crate::disruption::plan::{Wanted, counts_replicas, plan, wanted};
use crate::disruption::reconcile::retried;
use crate::tests::cluster::now;
use crate::tests::fixtures::{PodBuilder, ago, build, pod};

fn replicas(counts: &[i32]) -> BTreeMap<Uid, i32> {
    counts.iter().enumerate().map(|(number, count)| (Uid::from(number.to_string().as_str()), *count)).collect()
}

#[test]
fn a_budget_wants_a_number_or_a_part_of_the_replicas() {
    for (name, spec, pods, controllers, expected, healthy) in [
        ("a number of available pods", json!({ "minAvailable": 3 }), 4, &[][..], 4, 3),
        ("more than there are", json!({ "minAvailable": 3 }), 1, &[][..], 1, 3),
        ("none available", json!({ "minAvailable": 0 }), 2, &[][..], 2, 0),
        ("a percentage", json!({ "minAvailable": "67%" }), 1, &[3][..], 3, 3),
        ("a percentage that is exact", json!({ "minAvailable": "50%" }), 1, &[10][..], 10, 5),
        ("a percentage of no replicas", json!({ "minAvailable": "50%" }), 1, &[0][..], 0, 0),
        ("all of them", json!({ "minAvailable": "100%" }), 9, &[4, 5][..], 9, 9),
        ("a number of unavailable pods", json!({ "maxUnavailable": 1 }), 1, &[1][..], 1, 0),
        ("one of several", json!({ "maxUnavailable": 2 }), 1, &[7][..], 7, 5),
        ("more than there should be", json!({ "maxUnavailable": 5 }), 1, &[3][..], 3, 0),
        ("a percentage unavailable", json!({ "maxUnavailable": "30%" }), 1, &[3, 4][..], 7, 4),
        ("both, which is not valid", json!({ "maxUnavailable": 1, "minAvailable": 9 }), 1, &[3][..], 3, 2),
        ("neither", json!({}), 5, &[3][..], 0, 0),
        ("many replicas", json!({ "minAvailable": "1%" }), 1, &[i32::MAX, i32::MAX][..], i32::MAX, 21_474_837),
    ] {
        let budget = budget("web", spec);
        let found = wanted(&budget, pods, &replicas(controllers));
        assert_eq!(found, Ok(Wanted { expected, healthy }), "{name}");
    }
}

#[test]
fn what_is_no_percentage_is_an_error() {
    for spec in [json!({ "minAvailable": "x" }), json!({ "maxUnavailable": "3" })] {
        let budget = budget("web", spec);
        assert!(counts_replicas(&budget));
        assert!(wanted(&budget, 1, &replicas(&[3])).is_err());
    }
}

#[test]
fn only_a_number_of_available_pods_counts_no_replicas() {
    for (spec, counts) in [
        (json!({ "minAvailable": 3 }), false),
        (json!({}), false),
        (json!({ "minAvailable": "3%" }), true),
        (json!({ "maxUnavailable": 3 }), true),
        (json!({ "maxUnavailable": "3%" }), true),
    ] {
        assert_eq!(counts_replicas(&budget("web", spec.clone())), counts, "{spec}");
    }
}

#[test]
fn each_controller_counts_once_and_pods_without_one_are_unmanaged() {
    let pods = build(&[pod("a"), pod("b"), pod("c").owned_by("other"), pod("d").orphan()]);
    let controllers = Controllers::of(&pods);
    let found: Vec<_> = controllers.references.iter().map(|(owner, pod)| (&*owner.name, pod.name())).collect();
    assert_eq!(found, [("web", "a"), ("other", "c")]);
    assert!(controllers.has_unmanaged_pods);
    assert!(!Controllers::of(&pods[..3]).has_unmanaged_pods);
}

struct Case {
    name: &'static str,
    pods: Vec<PodBuilder>,
    /// Pods whose eviction was admitted so many seconds ago.
    disrupted: &'static [(&'static str, i64)],
    wanted: (i32, i32),
    healthy: i32,
    allowed: i32,
    still_disrupted: &'static [&'static str],
    not_deleted: &'static [&'static str],
    recheck_in: Option<i64>,
}

fn ready(name: &str) -> PodBuilder {
    pod(name).ready(60)
}

fn check(case: &Case) {
    let disrupted: serde_json::Map<String, Value> =
        case.disrupted.iter().map(|(name, seconds)| ((*name).to_owned(), json!(ago(*seconds)))).collect();
    let mut json = budget_json("web", json!({}));
    json["status"] = json!({ "disruptedPods": disrupted, "disruptionsAllowed": 7, "observedGeneration": 1 });
    let budget = view_of(&json);
    let (expected, healthy) = case.wanted;
    let planned = plan(&budget.status, 4, &build(&case.pods), Wanted { expected, healthy }, now());
    let status = &planned.status;
    assert_eq!((status.current_healthy, status.disruptions_allowed), (case.healthy, case.allowed), "{}", case.name);
    assert_eq!((status.expected_pods, status.desired_healthy, status.observed_generation), (expected, healthy, 4));
    let still: Vec<&str> = status.disrupted_pods.keys().map(|name| &**name).collect();
    assert_eq!(still, case.still_disrupted, "{}", case.name);
    let not_deleted: Vec<&str> = planned.not_deleted.iter().map(|pod| pod.metadata.key.name()).collect();
    assert_eq!(not_deleted, case.not_deleted, "{}", case.name);
    let recheck = case.recheck_in.map(|seconds| now() + SignedDuration::from_secs(seconds));
    assert_eq!(planned.recheck_at, recheck, "{}", case.name);
}

#[test]
fn what_is_healthy_beyond_what_has_to_be_may_be_disrupted() {
    const QUIET: Case = Case {
        name: "",
        pods: Vec::new(),
        disrupted: &[],
        wanted: (0, 0),
        healthy: 0,
        allowed: 0,
        still_disrupted: &[],
        not_deleted: &[],
        recheck_in: None,
    };
    for case in [
        Case { name: "no pod", ..QUIET },
        Case { name: "no expected pod", pods: vec![ready("a")], healthy: 1, ..QUIET },
        Case { name: "one more", pods: vec![ready("a"), ready("b")], wanted: (2, 1), healthy: 2, allowed: 1, ..QUIET },
        Case { name: "just enough", pods: vec![ready("a")], wanted: (1, 1), healthy: 1, ..QUIET },
        Case { name: "too few", pods: vec![ready("a")], wanted: (5, 3), healthy: 1, ..QUIET },
        Case { name: "unready pods", pods: vec![ready("a"), pod("b")], wanted: (2, 1), healthy: 1, ..QUIET },
        Case {
            name: "a terminating pod is not healthy",
            pods: vec![ready("a"), ready("b").terminating()],
            wanted: (2, 1),
            healthy: 1,
            ..QUIET
        },
        Case {
            name: "an admitted eviction",
            pods: vec![ready("a"), ready("b"), ready("c")],
            disrupted: &[("b", 30)],
            wanted: (3, 1),
            healthy: 2,
            allowed: 1,
            still_disrupted: &["b"],
            recheck_in: Some(90),
            ..QUIET
        },
        Case {
            name: "the first of two times out first",
            pods: vec![ready("a"), ready("b"), ready("c")],
            disrupted: &[("b", 30), ("c", 100)],
            wanted: (3, 1),
            healthy: 1,
            still_disrupted: &["b", "c"],
            recheck_in: Some(20),
            ..QUIET
        },
        Case {
            name: "an eviction that was carried out",
            pods: vec![ready("a"), ready("b").terminating()],
            disrupted: &[("b", 30), ("gone", 30)],
            wanted: (2, 0),
            healthy: 1,
            allowed: 1,
            ..QUIET
        },
        Case {
            name: "just before two minutes",
            pods: vec![ready("a")],
            disrupted: &[("a", 119)],
            wanted: (1, 0),
            still_disrupted: &["a"],
            recheck_in: Some(1),
            ..QUIET
        },
        Case {
            name: "after two minutes",
            pods: vec![ready("a")],
            disrupted: &[("a", 120)],
            wanted: (1, 0),
            healthy: 1,
            allowed: 1,
            not_deleted: &["a"],
            ..QUIET
        },
        Case {
            name: "admitted by a clock that is ahead",
            pods: vec![ready("a")],
            disrupted: &[("a", -30)],
            wanted: (1, 0),
            still_disrupted: &["a"],
            recheck_in: Some(150),
            ..QUIET
        },
    ] {
        check(&case);
    }
}

#[test]
fn a_budget_that_is_not_made_safe_is_retried() {
    use kcm_framework::Class::{Conflict, Forbidden, Terminal, Transient};
    let error = |class| ReconcileError::new(class, "failed");
    for (cause, write, expected) in [
        (Terminal, Conflict, Conflict),
        (Terminal, Forbidden, Forbidden),
        (Forbidden, Conflict, Conflict),
        (Transient, Terminal, Transient),
        (Terminal, Terminal, Terminal),
    ] {
        let retried = retried(error(cause), error(write));
        assert_eq!(retried.class(), expected, "the status fails with {cause:?}, and its write with {write:?}");
    }
}
