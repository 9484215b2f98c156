//! The status, how it is written, and rechecks.

use jiff::SignedDuration;
use kcm_framework::api::View as _;
use kcm_framework::api::views::ReplicaSet;
use serde_json::{Value, json};

use super::fixtures::{DEFAULTS, PodBuilder, ReplicaSetBuilder, ago, build, now, pod, replica_set};
use crate::shared::replicas::gates::Gates;
use crate::shared::replicas::status::{CountedPods, Failure, FailureReason, recheck_at, status, with_status};

const NO_TERMINATING: Gates = Gates { terminating_replicas: false, ..DEFAULTS };

struct Case {
    name: &'static str,
    owner: ReplicaSetBuilder,
    active: Vec<PodBuilder>,
    terminating: usize,
    failure: Option<Failure>,
    gates: Gates,
    /// The `status` that is put.
    status: Value,
}

impl Case {
    fn new(name: &'static str, owner: ReplicaSetBuilder, status: Value) -> Self {
        Self { name, owner, active: Vec::new(), terminating: 0, failure: None, gates: DEFAULTS, status }
    }
}

fn failed(reason: FailureReason, message: &str) -> Failure {
    Failure { reason, message: message.to_owned() }
}

fn condition(type_: &str, reason: &str, message: &str) -> Value {
    json!({ "type": type_, "status": "True", "lastTransitionTime": ago(60), "reason": reason, "message": message })
}

/// A status with these counts.
fn counts(replicas: i32, labeled: i32, ready: i32, available: i32) -> Value {
    json!({
        "replicas": replicas,
        "fullyLabeledReplicas": labeled,
        "readyReplicas": ready,
        "availableReplicas": available,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    })
}

fn with(mut status: Value, name: &str, value: Value) -> Value {
    status[name] = value;
    status
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, a row per behaviour")]
fn the_status_that_is_put() {
    let web = || replica_set("web");
    let full = json!({ "app": "web", "tier": "front" });
    let old_failure = condition("ReplicaFailure", "FailedCreate", "old");
    let foreign = condition("Odd", "Strange", "kept");
    for Case { name, owner, active, terminating, failure, gates, status: expected } in [
        Case::new("no pods", web(), counts(0, 0, 0, 0)),
        Case {
            active: vec![pod("a"), pod("b").ready(60), pod("c").ready(0)],
            ..Case::new("ready at once is available at once", web(), counts(3, 3, 2, 2))
        },
        Case {
            active: vec![
                pod("just long enough").ready(30),
                pod("a second short").ready(29),
                pod("ready-time-unknown").ready_unknown_since(),
                pod("not ready"),
            ],
            ..Case::new("available after a while", web().min_ready_seconds(30), counts(4, 4, 3, 1))
        },
        Case {
            active: vec![
                pod("all").labels(full.clone()),
                pod("more").labels(json!({ "app": "web", "tier": "front", "x": "y" })),
                pod("fewer"),
                pod("others").labels(json!({ "app": "web", "tier": "back" })),
            ],
            ..Case::new("all labels of the template", web().template_labels(full), counts(4, 2, 0, 0))
        },
        Case {
            terminating: 2,
            ..Case::new("pods on their way out", web(), with(counts(0, 0, 0, 0), "terminatingReplicas", json!(2)))
        },
        Case {
            terminating: 2,
            gates: NO_TERMINATING,
            ..Case::new(
                "without the gate an earlier count is removed",
                web().status(json!({ "replicas": 0, "terminatingReplicas": 7 })),
                {
                    let mut status = counts(0, 0, 0, 0);
                    status.as_object_mut().unwrap().remove("terminatingReplicas");
                    status
                },
            )
        },
        Case::new(
            "the generation that was acted on",
            web().generation(7),
            with(counts(0, 0, 0, 0), "observedGeneration", json!(7)),
        ),
        Case {
            failure: Some(failed(FailureReason::FailedCreate, "exceeded quota")),
            ..Case::new(
                "a failure is reported after what is there",
                web().status(json!({ "replicas": 0, "conditions": [foreign] })),
                with(
                    counts(0, 0, 0, 0),
                    "conditions",
                    json!([foreign, {
                        "type": "ReplicaFailure",
                        "status": "True",
                        "lastTransitionTime": ago(0),
                        "reason": "FailedCreate",
                        "message": "exceeded quota",
                    }]),
                ),
            )
        },
        Case {
            failure: Some(failed(FailureReason::FailedDelete, "new")),
            ..Case::new(
                "a failure that is reported stays as it was reported, and where",
                web().status(json!({ "replicas": 0, "conditions": [old_failure, foreign] })),
                with(counts(0, 0, 0, 0), "conditions", json!([old_failure, foreign])),
            )
        },
        Case::new(
            "a failure that is over",
            web().status(json!({ "replicas": 0, "conditions": [old_failure, foreign] })),
            with(counts(0, 0, 0, 0), "conditions", json!([foreign])),
        ),
        Case::new(
            "the last condition takes the list with it",
            web().status(json!({ "replicas": 0, "conditions": [old_failure] })),
            counts(0, 0, 0, 0),
        ),
        Case::new(
            "what we do not know stays",
            web().status(json!({ "replicas": 3, "brandNew": { "x": [1] } })),
            with(counts(0, 0, 0, 0), "brandNew", json!({ "x": [1] })),
        ),
    ] {
        let owner = owner.build();
        let counted = CountedPods { active: &build(&active), terminating };
        let computed = status(&*owner, counted, failure.as_ref(), gates, now());
        let document = with_status(&*owner, &computed).unwrap();
        let written: Value = serde_json::from_str(document.as_str()).unwrap();
        assert_eq!(written["status"], expected, "{name}");

        let mut before: Value = serde_json::from_str(owner.document.as_str()).unwrap();
        before["status"] = expected;
        assert_eq!(written, before, "{name}: nothing but the status changes");

        let next = ReplicaSet::decode(document.as_str()).unwrap();
        let again = status(&next, counted, failure.as_ref(), gates, now());
        assert_eq!(again, next.status, "{name}: what was written is not written again");
    }
}

#[test]
fn a_status_that_differs_in_any_field_is_written() {
    let settled = with(counts(1, 1, 1, 1), "conditions", json!([condition("Odd", "Strange", "kept")]));
    let active = [pod("a").ready(60)];
    let differs = |owner: &ReplicaSetBuilder, gates| {
        let owner = owner.build();
        status(&*owner, CountedPods { active: &build(&active), terminating: 0 }, None, gates, now()) != owner.status
    };
    assert!(!differs(&replica_set("web").status(settled.clone()), DEFAULTS), "nothing changed");
    for (name, value) in [
        ("replicas", json!(2)),
        ("fullyLabeledReplicas", json!(0)),
        ("readyReplicas", json!(0)),
        ("availableReplicas", json!(0)),
        ("terminatingReplicas", json!(1)),
        ("terminatingReplicas", Value::Null),
        ("observedGeneration", json!(0)),
        ("conditions", json!([condition("ReplicaFailure", "FailedCreate", "over")])),
    ] {
        let owner = replica_set("web").status(with(settled.clone(), name, value.clone()));
        assert!(differs(&owner, DEFAULTS), "{name} was {value}");
    }
    assert!(differs(&replica_set("web").status(settled), NO_TERMINATING), "the gate was turned off");
}

#[test]
fn looks_again_when_the_next_pod_becomes_available() {
    let waiting = || replica_set("web").min_ready_seconds(30);
    for (name, owner, active, expected) in [
        ("no period", replica_set("web"), vec![pod("a").ready(1)], None),
        ("none is ready", waiting(), vec![pod("a")], None),
        ("all are available", waiting(), vec![pod("a").ready(30)], None),
        ("one waits", waiting(), vec![pod("a").ready(12), pod("b").ready(60)], Some(18)),
        ("the first of those that wait", waiting(), vec![pod("a").ready(5), pod("b").ready(28), pod("c")], Some(2)),
        ("without a ready time", waiting(), vec![pod("a").ready_unknown_since()], Some(30)),
        ("ready in the future", waiting(), vec![pod("a").ready(-10)], Some(40)),
    ] {
        let (owner, active) = (owner.build(), build(&active));
        let expected = expected.map(|seconds| now() + SignedDuration::from_secs(seconds));
        assert_eq!(recheck_at(&*owner, &active, now()), expected, "{name}");
    }
}
