//! The status, and how it is written.

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::{Deployment, DeploymentStatus, DeploymentStrategy, ReplicaSet};
use serde_json::{Value, json};

use super::fixtures::{
    DEFAULTS, DeploymentBuilder, ReplicaSetBuilder, ago, available, build, condition, deployment, now, progressing, set,
};
use crate::deployment::conditions::Conditions;
use crate::deployment::gates::Gates;
use crate::deployment::rollout::Limits;
use crate::deployment::status::{CountedReplicaSet, StatusInput, StatusScope, status, with_status};

struct Case {
    name: &'static str,
    owner: DeploymentBuilder,
    old: Vec<ReplicaSetBuilder>,
    new: Option<ReplicaSetBuilder>,
    scope: StatusScope,
    gates: Gates,
    /// The `status` that is put, without members that are 0.
    status: Value,
}

impl Case {
    fn new(name: &'static str, owner: DeploymentBuilder, status: Value) -> Self {
        Self { name, owner, old: vec![], new: None, scope: StatusScope::Counts, gates: DEFAULTS, status }
    }

    fn compute(&self) -> (DeploymentStatus, Arc<Deployment>) {
        let owner = self.owner.build();
        let (old, new) = (build(&self.old), self.new.as_ref().map(ReplicaSetBuilder::build));
        let limits = limits_of(&owner);
        let basis = StatusInput {
            deployment: &owner,
            limits: &limits,
            old: old.iter().map(|set| counted(set)).collect(),
            new: new.as_ref().map(|set| counted(set)),
        };
        let reported = Conditions::of(&owner.status.conditions);
        (status(&basis, self.scope, reported, self.gates, now()), owner)
    }

    fn of(&self, owner: DeploymentBuilder) -> Self {
        let (old, new) = (self.old.clone(), self.new.clone());
        let Self { name, scope, gates, .. } = *self;
        Self { name, owner, old, new, scope, gates, status: Value::Null }
    }
}

fn counted(set: &ReplicaSet) -> CountedReplicaSet<'_> {
    CountedReplicaSet { name: set.metadata.key.name(), desired: set.replicas, status: &set.status }
}

fn limits_of(owner: &Deployment) -> Limits {
    match &owner.strategy {
        DeploymentStrategy::RollingUpdate { max_unavailable, max_surge } => {
            Limits::rolling(owner.replicas, max_surge.as_ref(), max_unavailable.as_ref()).unwrap()
        }
        DeploymentStrategy::Recreate | DeploymentStrategy::Other(_) => Limits::not_rolling(owner.replicas),
    }
}

/// Without the members that are 0.
fn bare(mut status: Value) -> Value {
    status.as_object_mut().unwrap().retain(|name, value| *value != 0 || name == "terminatingReplicas");
    status
}

fn reported(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    let mut reported = condition(type_, status, reason, 0);
    reported["message"] = json!(message);
    reported
}

fn check(case: &Case) {
    let name = case.name;
    let (computed, owner) = case.compute();
    let document = with_status(&owner, &computed, None).unwrap();
    let written: Value = serde_json::from_str(document.as_str()).unwrap();
    assert_eq!(bare(written["status"].clone()), case.status, "{name}");

    let mut before: Value = serde_json::from_str(owner.document.as_str()).unwrap();
    before["status"] = written["status"].clone();
    assert_eq!(written, before, "{name}: nothing but the status changes");

    let next = case.of(DeploymentBuilder::from(written));
    assert_eq!(next.compute().0, next.owner.build().status, "{name}: the status is not written again");
}

fn unavailable() -> Value {
    let mut condition = condition("Available", "False", "MinimumReplicasUnavailable", 0);
    condition["message"] = json!("Deployment does not have minimum availability.");
    condition
}

#[test]
fn replica_sets_are_counted() {
    let web = |replicas| deployment("web").replicas(replicas);
    let old = || set("old").image("image:0");
    for case in [
        Case::new(
            "no replica set",
            web(4).generation(7),
            json!({ "observedGeneration": 7, "terminatingReplicas": 0, "conditions": [unavailable()] }),
        ),
        Case {
            old: vec![old().scaled_to(3, 2)],
            new: Some(set("new").scaled_to(2, 1)),
            ..Case::new(
                "old and new",
                web(4),
                json!({
                    "observedGeneration": 1,
                    "replicas": 5,
                    "updatedReplicas": 2,
                    "readyReplicas": 3,
                    "availableReplicas": 3,
                    "unavailableReplicas": 2,
                    "terminatingReplicas": 0,
                    "conditions": [available(0)],
                }),
            )
        },
        Case {
            new: Some(set("new").scaled_to(4, 4).with("/spec", "replicas", json!(2))),
            ..Case::new(
                "more available than desired",
                web(2),
                json!({
                    "observedGeneration": 1,
                    "replicas": 4,
                    "updatedReplicas": 4,
                    "readyReplicas": 4,
                    "availableReplicas": 4,
                    "terminatingReplicas": 0,
                    "conditions": [available(0)],
                }),
            )
        },
        Case::new(
            "enough are available for 0 replicas",
            web(0),
            json!({ "observedGeneration": 1, "terminatingReplicas": 0, "conditions": [available(0)] }),
        ),
        Case {
            new: Some(set("new").scaled_to(4, 3)),
            ..Case::new(
                "all must be available where nothing rolls",
                web(4).recreate(),
                json!({
                    "observedGeneration": 1,
                    "replicas": 4,
                    "updatedReplicas": 4,
                    "readyReplicas": 3,
                    "availableReplicas": 3,
                    "unavailableReplicas": 1,
                    "terminatingReplicas": 0,
                    "conditions": [unavailable()],
                }),
            )
        },
        Case::new(
            "unknown fields and unchanged conditions stay",
            web(4).status(json!({
                "collisionCount": 2,
                "brandNew": [1],
                "conditions": [{ "type": "Odd", "status": "True", "x": 1 }, available(60)],
            })),
            json!({
                "observedGeneration": 1,
                "collisionCount": 2,
                "brandNew": [1],
                "terminatingReplicas": 0,
                "conditions": [{ "type": "Odd", "status": "True", "x": 1 }, unavailable()],
            }),
        ),
    ] {
        check(&case);
    }
}

#[test]
fn terminating_pods_are_counted_if_every_replica_set_counts_them() {
    let of = |counts: [Value; 2], gates| {
        let [old, new] = counts.map(|count| set("a").with("/status", "terminatingReplicas", count));
        let web = deployment("web").status(json!({ "terminatingReplicas": 9 }));
        let case = Case { old: vec![old], new: Some(new), gates, ..Case::new("", web, Value::Null) };
        case.compute().0.terminating_replicas
    };
    assert_eq!(of([json!(2), json!(3)], DEFAULTS), Some(5));
    assert_eq!(of([json!(2), Value::Null], DEFAULTS), None, "one does not count them");
    assert_eq!(of([json!(2), json!(3)], Gates { terminating_replicas: false }), None, "the gate is off");
    let unseen = set("a").with("", "status", json!({ "replicas": 0 }));
    let case = Case { old: vec![unseen], ..Case::new("", deployment("web"), Value::Null) };
    assert_eq!(case.compute().0.terminating_replicas, Some(0), "one without an observed generation has none");
}

/// The condition `Progressing` after a rollout step.
fn progress(owner: DeploymentBuilder, old: Vec<ReplicaSetBuilder>, new: Option<ReplicaSetBuilder>) -> Value {
    let case = Case { old, new, scope: StatusScope::Rollout, ..Case::new("", owner, Value::Null) };
    let (computed, owner) = case.compute();
    let document = with_status(&owner, &computed, None).unwrap();
    let written: Value = serde_json::from_str(document.as_str()).unwrap();
    let conditions = written["status"]["conditions"].as_array().cloned().unwrap();
    conditions.into_iter().find(|condition| condition["type"] == "Progressing").unwrap_or_default()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, a row for each change")]
fn progress_is_a_change_since_the_last_status() {
    let web = |conditions: Value| {
        deployment("web").replicas(4).status(json!({
            "observedGeneration": 1,
            "replicas": 4,
            "updatedReplicas": 2,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "conditions": conditions,
        }))
    };
    let old = |count, available| vec![set("old").image("image:0").scaled_to(count, available)];
    let new = |count, available| Some(set("web-new").scaled_to(count, available));
    let created = |age| json!([progressing("True", "NewReplicaSetCreated", age)]);
    // The status did not change: the transition time stays, the update time is renewed.
    let renewed = |reason: &str, message: &str, since: i64| {
        let mut reported = reported("Progressing", "True", reason, message);
        reported["lastTransitionTime"] = json!(ago(since));
        reported
    };
    let updated = |since| renewed("ReplicaSetUpdated", "ReplicaSet \"web-new\" is progressing.", since);
    let timed_out = || {
        reported(
            "Progressing",
            "False",
            "ProgressDeadlineExceeded",
            "ReplicaSet \"web-new\" has timed out progressing.",
        )
    };
    for (name, owner, old, new, expected) in [
        ("more new ones", web(created(9)), old(2, 1), new(3, 2), updated(9)),
        ("fewer old ones", web(created(9)), old(1, 1), new(2, 2), updated(9)),
        ("more are ready", web(created(9)), old(2, 2), new(2, 2), updated(9)),
        (
            "progress renews the condition",
            web(json!([progressing("True", "ReplicaSetUpdated", 9)])),
            old(2, 2),
            new(2, 2),
            updated(9),
        ),
        (
            "progress after a failure",
            web(json!([progressing("False", "ProgressDeadlineExceeded", 9)])),
            old(2, 2),
            new(2, 2),
            updated(0),
        ),
        ("no condition", web(json!([])), old(2, 2), new(2, 2), updated(0)),
        (
            "nothing, not long ago",
            web(created(600)),
            old(2, 1),
            new(2, 2),
            progressing("True", "NewReplicaSetCreated", 600),
        ),
        ("nothing for too long", web(created(601)), old(2, 1), new(2, 2), timed_out()),
        ("no progress and no condition", web(json!([])), old(2, 1), new(2, 2), Value::Null),
        (
            "a failure stays unchanged",
            web(json!([progressing("False", "ProgressDeadlineExceeded", 9)])),
            old(2, 1),
            new(2, 2),
            progressing("False", "ProgressDeadlineExceeded", 9),
        ),
        (
            "a rollout that had ended does not fail",
            web(json!([progressing("True", "NewReplicaSetAvailable", 9000)])),
            old(2, 1),
            new(2, 2),
            progressing("True", "NewReplicaSetAvailable", 9000),
        ),
        (
            "the deadline starts when a deployment is resumed",
            web(json!([progressing("Unknown", "DeploymentResumed", 601)])),
            old(2, 1),
            new(2, 2),
            timed_out(),
        ),
        (
            "complete",
            web(created(9)),
            vec![],
            new(4, 4),
            renewed("NewReplicaSetAvailable", "ReplicaSet \"web-new\" has successfully progressed.", 9),
        ),
        (
            "recreated pods of a complete rollout are no progress",
            web(json!([progressing("True", "NewReplicaSetAvailable", 9)])),
            vec![],
            new(4, 3),
            progressing("True", "NewReplicaSetAvailable", 9),
        ),
        (
            "complete without a replica set",
            deployment("web").replicas(0).status(json!({ "conditions": [] })),
            vec![],
            None,
            reported(
                "Progressing",
                "True",
                "NewReplicaSetAvailable",
                "Deployment \"web\" has successfully progressed.",
            ),
        ),
        (
            "complete without a new replica set",
            deployment("web").replicas(0).status(json!({
                "replicas": 3,
                "updatedReplicas": 3,
                "availableReplicas": 3,
                "conditions": [progressing("True", "ReplicaSetUpdated", 9)],
            })),
            old(0, 0),
            None,
            renewed("NewReplicaSetAvailable", "Deployment \"web\" has successfully progressed.", 9),
        ),
        ("the largest deadline, which is none", web(created(9)).no_deadline(), old(2, 2), new(2, 2), Value::Null),
    ] {
        assert_eq!(progress(owner, old, new), expected, "{name}");
    }
}

#[test]
fn failures_of_replica_sets_are_reported_the_new_one_first() {
    let failing = |set: ReplicaSetBuilder, message: &str| {
        let failure = json!({
            "type": "ReplicaFailure",
            "status": "True",
            "lastTransitionTime": ago(50),
            "reason": "FailedCreate",
            "message": message,
        });
        set.with("/status", "conditions", json!([failure]))
    };
    let expected = |message: &str| {
        let mut failure = condition("ReplicaFailure", "True", "FailedCreate", 50);
        failure["message"] = json!(message);
        failure
    };
    let failure = |reported: Value, old: Vec<ReplicaSetBuilder>, new: ReplicaSetBuilder, scope| {
        let owner = deployment("web").no_deadline().status(json!({ "conditions": reported }));
        let (status, _) = Case { old, new: Some(new), scope, ..Case::new("", owner, Value::Null) }.compute();
        let found = status.conditions.iter().find(|condition| condition.type_ == "ReplicaFailure").cloned();
        serde_json::to_value(found).unwrap()
    };
    let (old, new) = (|| set("old").image("image:0"), || set("new"));
    let both = || vec![failing(old(), "of the old one")];
    assert_eq!(
        failure(json!([]), both(), failing(new(), "of the new one"), StatusScope::Rollout),
        expected("of the new one")
    );
    assert_eq!(failure(json!([]), both(), new(), StatusScope::Rollout), expected("of the old one"));
    assert_eq!(
        failure(json!([expected("reported")]), both(), new(), StatusScope::Rollout),
        expected("reported"),
        "unchanged"
    );
    assert_eq!(
        failure(json!([expected("reported")]), vec![], new(), StatusScope::Rollout),
        Value::Null,
        "no failure any more"
    );
    assert_eq!(
        failure(json!([expected("reported")]), vec![], new(), StatusScope::Counts),
        expected("reported"),
        "not computed"
    );
}

#[test]
fn a_revision_is_written_with_the_status() {
    let owner = deployment("web").annotations(json!({ "note": "kept" })).build();
    let document = with_status(&owner, &owner.status, Some("3")).unwrap();
    let written = Deployment::decode(document.as_str()).unwrap();
    assert_eq!(written.metadata.annotations.get("deployment.kubernetes.io/revision"), Some("3"));
    assert_eq!(written.annotation("note").as_deref(), Some("kept"));
}
