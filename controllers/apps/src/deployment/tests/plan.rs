//! The plan of a reconcile for each action.

use kcm_framework::api::Uid;
use kcm_framework::api::views::PodPhase;
use kcm_framework::events::Event as _;
use serde_json::json;

use super::fixtures::{DEFAULTS, DeploymentBuilder, ReplicaSetBuilder, build, deployment, now, progressing, set};
use crate::deployment::observe::Observed;
use crate::deployment::plan::{InvalidDeployment, Plan, Step, SyncAction, plan, plan_for_everything};
use crate::deployment::rollback::Rollback;

fn planned_with(
    owner: &DeploymentBuilder,
    sets: &[ReplicaSetBuilder],
    pods: &[(&str, PodPhase)],
) -> Result<Plan, InvalidDeployment> {
    let pods = pods.iter().map(|(set, phase)| (Uid::from(format!("uid-of-{set}").as_str()), *phase)).collect();
    let observed = Observed { deployment: owner.build(), replica_sets: build(sets), pods };
    plan(&observed, build(sets), DEFAULTS, now())
}

fn planned(owner: &DeploymentBuilder, sets: &[ReplicaSetBuilder]) -> Plan {
    planned_with(owner, sets, &[]).unwrap()
}

/// A step as a string: verb, replica set and replicas.
fn words(plan: &Plan) -> Vec<String> {
    let word = |step: &Step| match step {
        Step::RecordEvent(event) => format!("record {}", event.text().reason),
        Step::Create(set) => format!("create {}", set.replicas),
        Step::Edit(edit) if edit.is_scale() => {
            format!("scale {} {} {}", edit.set.metadata.key.name(), edit.set.replicas, edit.replicas)
        }
        Step::Edit(edit) => format!("edit {}", edit.set.metadata.key.name()),
        Step::Delete(set) => format!("delete {}", set.metadata.key.name()),
        Step::RollBack { rollback, revision: present } => {
            let what = match rollback {
                Rollback::To { revision, .. } => format!("to {revision}"),
                Rollback::NoLastRevision => "without last".to_owned(),
                Rollback::NoSuchRevision => "without such".to_owned(),
                Rollback::TemplateUnchanged => "to the same".to_owned(),
            };
            format!("roll back {what} from {present}")
        }
    };
    plan.steps.iter().map(word).collect()
}

fn progress(plan: &Plan) -> Option<&str> {
    let conditions = &plan.status_update.as_ref()?.status.conditions;
    conditions.iter().find(|condition| condition.type_ == "Progressing").map(|condition| condition.reason.as_str())
}

/// The replica set of the present template, with the annotations of a deployment of 4 with a surge of 1.
fn new(replicas: i32, available: i32) -> ReplicaSetBuilder {
    set("new").scaled_to(replicas, available).revision("2").sizes(4, 5).created(10)
}

fn old(replicas: i32, available: i32) -> ReplicaSetBuilder {
    set("old").image("image:0").scaled_to(replicas, available).revision("1").sizes(4, 5).created(100)
}

/// A deployment of 4 that had rolled to revision 2.
fn web() -> DeploymentBuilder {
    deployment("web").replicas(4).rolled_out("2")
}

/// A deployment of 4 that keeps no old replica sets, and whose status at generation 1 counts so many replicas.
fn unfinished(mut status: serde_json::Value, generation: i64) -> DeploymentBuilder {
    status["observedGeneration"] = json!(1);
    status["conditions"] = json!([progressing("True", "ReplicaSetUpdated", 10)]);
    web().status(status).generation(generation).with("/spec", "revisionHistoryLimit", json!(0))
}

struct Case {
    name: &'static str,
    owner: DeploymentBuilder,
    sets: Vec<ReplicaSetBuilder>,
    action: SyncAction,
    steps: &'static [&'static str],
    progress: Option<&'static str>,
}

const ENDED: Option<&str> = Some("NewReplicaSetAvailable");

#[test]
#[expect(clippy::too_many_lines, reason = "a table, a row for each action")]
fn the_first_action_whose_condition_holds_is_taken() {
    let rollback =
        |to: &str| json!({ "deprecated.deployment.rollback.to": to, "deployment.kubernetes.io/revision": "2" });
    let mid = || vec![old(3, 3), new(2, 1)];
    for Case { name, owner, sets, action, steps, progress: expected } in [
        Case {
            name: "being deleted",
            owner: web().replicas(9).paused().annotations(rollback("1")).terminating(),
            sets: mid(),
            action: SyncAction::Terminating,
            steps: &[],
            progress: ENDED,
        },
        Case {
            name: "paused, with a requested rollback: scaled, but not cleaned up",
            owner: web().paused().annotations(rollback("1")).with("/spec", "revisionHistoryLimit", json!(0)),
            sets: vec![old(0, 0), new(3, 3)],
            action: SyncAction::Paused,
            steps: &["scale new 3 4"],
            progress: Some("DeploymentPaused"),
        },
        Case {
            name: "paused: cleaned up",
            owner: web().paused().with("/spec", "revisionHistoryLimit", json!(0)),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::Paused,
            steps: &["delete old"],
            progress: Some("DeploymentPaused"),
        },
        Case {
            name: "paused, changed while paused and scaled up: the scaled replica set is not deleted",
            owner: web().replicas(5).paused().image("image:9").with("/spec", "revisionHistoryLimit", json!(0)),
            sets: vec![old(0, 0), new(0, 0)],
            action: SyncAction::Paused,
            steps: &["scale new 0 5", "delete old"],
            progress: Some("DeploymentPaused"),
        },
        Case {
            name: "paused with a new template: no replica set is created",
            owner: web().paused().image("image:9"),
            sets: vec![old(4, 4)],
            action: SyncAction::Paused,
            steps: &[],
            progress: Some("DeploymentPaused"),
        },
        Case {
            name: "paused in mid-rollout and scaled: in proportion",
            owner: web().replicas(8).paused(),
            sets: mid(),
            action: SyncAction::Paused,
            steps: &["scale new 2 4", "scale old 3 6"],
            progress: Some("DeploymentPaused"),
        },
        Case {
            name: "a rollback before a change of size",
            owner: web().replicas(8).annotations(rollback("1")),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::RollBack,
            steps: &["roll back to 1 from 2"],
            progress: None,
        },
        Case {
            name: "a rollback to the last",
            owner: web().annotations(rollback("0")),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::RollBack,
            steps: &["roll back to 1 from 2"],
            progress: None,
        },
        Case {
            name: "a rollback to the last, together with the template of an earlier revision",
            owner: web().image("image:0").annotations(rollback("0")),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::RollBack,
            steps: &["edit old", "roll back to 2 from 3"],
            progress: None,
        },
        Case {
            name: "a rollback to the revision that the template had before it was renewed",
            owner: web().image("image:0").annotations(rollback("1")),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::RollBack,
            steps: &["edit old", "roll back without such from 3"],
            progress: None,
        },
        Case {
            name: "a rollback waits for the set of the present template",
            owner: web().image("image:9").annotations(rollback("1")),
            sets: vec![old(4, 4)],
            action: SyncAction::RollBack,
            steps: &["create 1"],
            progress: Some("NewReplicaSetCreated"),
        },
        Case {
            name: "a rollback to what is not a number",
            owner: web().annotations(rollback("x")),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::RollingUpdate,
            steps: &[],
            progress: ENDED,
        },
        Case {
            name: "a change of size",
            owner: web().replicas(6),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::Scale,
            steps: &["scale new 4 6"],
            progress: ENDED,
        },
        Case {
            name: "a change of size before a change of template",
            owner: web().replicas(6).image("image:9"),
            sets: vec![new(4, 4)],
            action: SyncAction::Scale,
            steps: &["scale new 4 6"],
            progress: ENDED,
        },
        Case {
            name: "the first replica set",
            owner: deployment("web").replicas(4),
            sets: vec![],
            action: SyncAction::RollingUpdate,
            steps: &["create 4"],
            progress: Some("NewReplicaSetCreated"),
        },
        Case {
            name: "a change of template: the new one is created with the surge, and an old one is scaled down",
            owner: web().image("image:9"),
            sets: vec![new(4, 4)],
            action: SyncAction::RollingUpdate,
            steps: &["create 1", "scale new 4 3"],
            progress: Some("NewReplicaSetCreated"),
        },
        Case {
            name: "the new one grows before old ones shrink",
            owner: web(),
            sets: vec![old(3, 3), new(1, 1)],
            action: SyncAction::RollingUpdate,
            steps: &["scale new 1 2"],
            progress: ENDED,
        },
        Case {
            name: "old ones shrink when the new one cannot grow, each in one write",
            owner: web(),
            sets: vec![old(3, 2), new(2, 2)],
            action: SyncAction::RollingUpdate,
            steps: &["scale old 3 1"],
            progress: ENDED,
        },
        Case {
            name: "a rollout that has ended is cleaned up",
            owner: web().with("/spec", "revisionHistoryLimit", json!(0)),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::RollingUpdate,
            steps: &["delete old"],
            progress: ENDED,
        },
        Case {
            name: "a rollout that has not ended is not cleaned up",
            owner: unfinished(json!({ "updatedReplicas": 4, "replicas": 4, "availableReplicas": 3 }), 1),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::RollingUpdate,
            steps: &[],
            progress: ENDED,
        },
        Case {
            name: "a recreation that has not ended is not cleaned up",
            owner: unfinished(json!({ "updatedReplicas": 4, "replicas": 4, "availableReplicas": 3 }), 1).recreate(),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::Recreate,
            steps: &[],
            progress: ENDED,
        },
        Case {
            name: "nothing is cleaned up while the status is of an earlier generation",
            owner: unfinished(json!({ "updatedReplicas": 4, "replicas": 4, "availableReplicas": 4 }), 2),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::RollingUpdate,
            steps: &[],
            progress: ENDED,
        },
        Case {
            name: "nothing to do",
            owner: web(),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::RollingUpdate,
            steps: &[],
            progress: ENDED,
        },
        Case {
            name: "a set that is adopted by its template is given a revision",
            owner: deployment("web").replicas(4),
            sets: vec![set("new").scaled_to(4, 4)],
            action: SyncAction::RollingUpdate,
            steps: &["edit new"],
            progress: ENDED,
        },
        Case {
            name: "a set that becomes the new one again is renewed and scaled in one write",
            owner: web().image("image:0"),
            sets: vec![old(0, 0), new(4, 4)],
            action: SyncAction::RollingUpdate,
            steps: &["scale old 0 1"],
            progress: ENDED,
        },
        Case {
            name: "minReadySeconds are the deployment's",
            owner: web().with("/spec", "minReadySeconds", json!(7)),
            sets: vec![new(4, 4)],
            action: SyncAction::RollingUpdate,
            steps: &["edit new"],
            progress: ENDED,
        },
        Case {
            name: "a pause is over",
            owner: web().status(json!({ "conditions": [progressing("Unknown", "DeploymentPaused", 9000)] })),
            sets: vec![new(4, 3)],
            action: SyncAction::RollingUpdate,
            steps: &[],
            progress: Some("ReplicaSetUpdated"),
        },
        Case {
            name: "a pause does not mend a rollout that has failed",
            owner: web()
                .paused()
                .status(json!({ "conditions": [progressing("False", "ProgressDeadlineExceeded", 9)] })),
            sets: vec![new(4, 3)],
            action: SyncAction::Paused,
            steps: &[],
            progress: Some("ProgressDeadlineExceeded"),
        },
        Case {
            name: "recreate: old ones first",
            owner: web().recreate().image("image:9"),
            sets: vec![old(1, 1), new(3, 3)],
            action: SyncAction::Recreate,
            steps: &["scale old 1 0", "scale new 3 0"],
            progress: ENDED,
        },
        Case {
            name: "recreate: then the new one",
            owner: web().recreate().image("image:9"),
            sets: vec![old(0, 0), new(0, 0)],
            action: SyncAction::Recreate,
            steps: &["create 4"],
            progress: Some("NewReplicaSetCreated"),
        },
        Case {
            name: "recreate: a rollback",
            owner: web().recreate().image("image:0"),
            sets: vec![old(0, 0), new(0, 0)],
            action: SyncAction::Recreate,
            steps: &["scale old 0 4"],
            progress: ENDED,
        },
    ] {
        let plan = planned(&owner, &sets);
        assert_eq!((plan.action, words(&plan)), (action, steps.iter().map(ToString::to_string).collect()), "{name}");
        assert_eq!(progress(&plan), expected, "{name}");
    }
}

#[test]
fn nothing_is_written_without_a_change() {
    let sets = [old(0, 0), new(4, 4)];
    let plan = planned(&web(), &sets);
    assert!(plan.steps.is_empty() && !plan.status_update.unwrap().is_needed(&web().build()));
    assert_eq!(plan.recheck, None);
}

#[test]
fn recreate_waits_for_pods_that_may_run() {
    let owner = web().recreate().image("image:9");
    let sets = [old(0, 0), new(0, 0)];
    for (pods, steps) in [
        (&[("old", PodPhase::Running)][..], vec![]),
        (&[("old", PodPhase::Unknown)], vec![]),
        (&[("new", PodPhase::Failed), ("old", PodPhase::Succeeded)], vec!["create 4"]),
    ] {
        assert_eq!(words(&planned_with(&owner, &sets, pods).unwrap()), steps, "{pods:?}");
    }
    let of_orphan = [("terminating-orphan", PodPhase::Running)];
    assert_eq!(words(&planned_with(&owner, &sets, &of_orphan).unwrap()), ["create 4"], "only claimed sets count");
    let owner = web().recreate();
    let running = [("new", PodPhase::Running)];
    assert_eq!(
        words(&planned_with(&owner, &[new(3, 3)], &running).unwrap()),
        ["scale new 3 4"],
        "pods of the new one may run"
    );
}

#[test]
fn the_deployment_has_the_revision_of_its_new_set() {
    let revision =
        |owner: &DeploymentBuilder, sets: &[ReplicaSetBuilder]| planned(owner, sets).status_update.unwrap().revision;
    assert_eq!(revision(&web(), &[new(4, 4)]), None, "unchanged");
    assert_eq!(revision(&deployment("web").replicas(4), &[new(4, 4)]).as_deref(), Some("2"));
    assert_eq!(revision(&web().image("image:9"), &[old(0, 0), new(4, 4)]).as_deref(), Some("3"), "one that is created");
    assert_eq!(revision(&web().image("image:0"), &[old(0, 0), new(4, 4)]).as_deref(), Some("3"), "one that is updated");
    assert_eq!(revision(&web().image("image:9").paused(), &[new(4, 4)]), None, "there is no new set");
    assert_eq!(revision(&deployment("web").terminating(), &[new(4, 4)]), None);
}

#[test]
fn a_rollout_without_progress_is_requeued() {
    let reported = json!({ "replicas": 4, "availableReplicas": 3, "readyReplicas": 3, "updatedReplicas": 1,
        "conditions": [progressing("True", "ReplicaSetUpdated", 100)] });
    let plan = planned(&web().status(reported.clone()), &[old(3, 3), new(1, 0).scaled_to(2, 0)]);
    assert!(plan.recheck.is_some());
    assert_eq!(planned(&web().status(reported).paused(), &[old(3, 3), new(2, 0)]).recheck, None);
}

#[test]
fn an_empty_selector_records_an_event_and_nothing_else() {
    let everything =
        |status| plan_for_everything(&deployment("web").selector(json!({})).generation(3).status(status).build());
    let plan = everything(json!({ "replicas": 7 }));
    assert_eq!((plan.action, words(&plan)), (SyncAction::SelectsEverything, vec!["record SelectingAll".to_owned()]));
    let status = plan.status_update.unwrap().status;
    assert_eq!((status.observed_generation, status.replicas), (3, 7));
    assert_eq!(everything(json!({ "observedGeneration": 5 })).status_update.unwrap().status.observed_generation, 5);
    assert_eq!(planned(&deployment("web").selector(json!({})), &[]).action, SyncAction::SelectsEverything);
}

#[test]
fn invalid_deployments_are_rejected() {
    let refusal = |owner: DeploymentBuilder| planned_with(&owner, &[], &[]).unwrap_err().to_string();
    let strategy = |strategy| web().with("/spec", "strategy", strategy);
    assert_eq!(refusal(strategy(json!({ "type": "Ramped" }))), "unexpected deployment strategy type: Ramped");
    let broken = strategy(json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "many" } }));
    assert_eq!(refusal(broken), "cannot resolve the limits of the rolling update");
    assert_eq!(planned(&strategy(json!({ "type": "Ramped" })).paused(), &[new(4, 4)]).action, SyncAction::Paused);
}

#[test]
fn limits_that_cannot_be_read_stop_only_a_rollout() {
    let invalid = |owner: DeploymentBuilder| {
        owner.with("/spec/strategy", "rollingUpdate", json!({ "maxSurge": "many", "maxUnavailable": 0 }))
    };
    let terminating =
        deployment("web").replicas(4).with("/metadata", "deletionTimestamp", json!("2026-01-02T11:00:00Z"));
    for (name, owner, action) in [
        ("terminating", terminating, SyncAction::Terminating),
        ("paused", deployment("web").replicas(4).paused(), SyncAction::Paused),
    ] {
        let plan = planned_with(&invalid(owner), &[new(4, 4)], &[]).expect(name);
        assert_eq!(plan.action, action, "{name}");
        assert_eq!(plan.status_update.expect(name).status.updated_replicas, 4, "{name}");
    }
    let rolls = planned_with(&invalid(deployment("web").replicas(4)), &[new(4, 4)], &[]);
    assert!(matches!(rolls, Err(InvalidDeployment::Limit(_))), "{rolls:?}");
}
